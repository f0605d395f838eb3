package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// Dialer connects only to addresses that its policy allows. It is safe for concurrent use.
type Dialer struct {
	dialer net.Dialer
}

// Dialer returns a dialler under this policy. A nil resolver is the system's.
func (p Policy) Dialer(timeout time.Duration, resolver *net.Resolver) *Dialer {
	return &Dialer{dialer: net.Dialer{Timeout: timeout, Resolver: resolver, ControlContext: p.control}}
}

// tried tells, for one dial, whether any address was allowed.
type tried struct{ allowed atomic.Bool }

type triedKey struct{}

var errNoneAnswered = errors.New("dial target: none of the name's allowed addresses could be connected to; others are not allowed")

// DialContext dials. Its error is an ErrRefused only when every address was refused: a name that has a refused address beside an
// allowed one, such as localhost, and does not answer is down, and nobody's mistake.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	this := &tried{}
	conn, err := d.dialer.DialContext(context.WithValue(ctx, triedKey{}, this), network, address)
	if errors.Is(err, ErrRefused) && this.allowed.Load() {
		// The standard dialler reports its first error only, here the refusal, whose advice would mislead.
		return nil, errNoneAnswered
	}
	return conn, err
}

// control sees every address just before its connect, each one that a name resolved to included.
func (p Policy) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return fmt.Errorf("dial target: network %q is not TCP", network)
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial target: the dialled address is no IP address and port: %w", ErrRefused)
	}
	if err := p.Check(target.Addr()); err != nil {
		return err
	}
	if this, ok := ctx.Value(triedKey{}).(*tried); ok {
		this.allowed.Store(true)
	}
	return nil
}
