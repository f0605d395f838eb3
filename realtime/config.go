package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config sets the bounds of a [Hub]. The zero value is ready for use.
type Config struct {
	// MaxConnections bounds the connections of the host. Newcomers are refused at the bound; evicting the oldest would only make
	// it come back. Defaults to 1,000.
	MaxConnections int
	// MaxPerUser bounds the connections of one user. Defaults to 20.
	MaxPerUser int
	// MaxPerAddress bounds the connections for one Principal.Address, where the application fills it. Defaults to no bound.
	MaxPerAddress int
	// MaxTopics bounds the topics of one connection. Defaults to 32.
	MaxTopics int
	// MaxRequestBytes bounds what is received from a client: request line and headers. Defaults to 16 KiB.
	MaxRequestBytes int
	// MaxEventBytes bounds the data of one event. Defaults to 16 KiB.
	MaxEventBytes int
	// History is how many notifications are remembered for clients that come back. Defaults to 4,096.
	History int

	// WriteTimeout is the client time-out: a connection on which one event cannot be written within it is lagging, and is
	// closed. Defaults to 30 s.
	WriteTimeout time.Duration
	// Heartbeat is the interval of the comments that keep proxies and the client's watchdog content. Defaults to 15 s.
	Heartbeat time.Duration
	// LifeSpan is how long a connection lives before it is asked to reconnect, give or take a tenth. Defaults to 1 h.
	LifeSpan time.Duration
	// SendBuffer is the kernel's send buffer for a connection, where the server was given [ConnContext]. Without the bound, a
	// client that does not read swallows megabytes before WriteTimeout can begin to count. Defaults to 32 KiB.
	SendBuffer int

	// Revalidate is asked at least every RevalidateEvery whether a subscriber may still listen, and until when. Any error closes
	// the connection: ErrUnauthenticated where its credential is no longer in force, ErrForbidden where that stands for less or for
	// another by now, and others too, since who cannot be checked is not trusted. It runs on a goroutine of its own for each connection, and its
	// context has a deadline and ends with the connection. Defaults to nil: access lasts until Principal.Expires, or until it is revoked.
	Revalidate func(ctx context.Context, s Subscriber) (expires time.Time, err error)
	// RevalidateEvery is the longest time between two calls of Revalidate for a connection. Defaults to 60 s.
	RevalidateEvery time.Duration
	// Permit is asked again for each notification at the moment it is handed to a connection. Where it says no, the connection is
	// closed, so that its client learns why when it reconnects. It must not block and must not call the hub. Defaults to nil:
	// what was authorized at subscription is delivered.
	Permit func(s Subscriber, t Topic) bool

	// Logger receives what operators may need to see. Defaults to discarding everything.
	Logger *slog.Logger
}

// ErrConfig is wrapped by the error of NewHub for a bound that makes no sense.
var ErrConfig = errors.New("invalid configuration")

func (c *Config) fill() {
	orInt := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	orTime := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	orInt(&c.MaxConnections, 1000)
	orInt(&c.MaxPerUser, 20)
	orInt(&c.MaxTopics, 32)
	orInt(&c.MaxRequestBytes, 16<<10)
	orInt(&c.MaxEventBytes, 16<<10)
	orInt(&c.History, 4096)
	orInt(&c.SendBuffer, 32<<10)
	orTime(&c.WriteTimeout, 30*time.Second)
	orTime(&c.Heartbeat, 15*time.Second)
	orTime(&c.LifeSpan, time.Hour)
	orTime(&c.RevalidateEvery, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	for _, b := range []struct {
		name  string
		value int64
	}{
		{"MaxConnections", int64(c.MaxConnections)}, {"MaxPerUser", int64(c.MaxPerUser)},
		{"MaxTopics", int64(c.MaxTopics)}, {"MaxRequestBytes", int64(c.MaxRequestBytes)},
		{"MaxEventBytes", int64(c.MaxEventBytes)}, {"History", int64(c.History)}, {"SendBuffer", int64(c.SendBuffer)},
		{"WriteTimeout", int64(c.WriteTimeout)}, {"Heartbeat", int64(c.Heartbeat)}, {"LifeSpan", int64(c.LifeSpan)},
		{"RevalidateEvery", int64(c.RevalidateEvery)},
	} {
		if b.value < 0 {
			return fmt.Errorf("%w: %s is negative", ErrConfig, b.name)
		}
	}
	if c.MaxPerAddress < 0 {
		return fmt.Errorf("%w: MaxPerAddress is negative", ErrConfig)
	}
	if c.Heartbeat < time.Millisecond || c.LifeSpan < time.Millisecond {
		return fmt.Errorf("%w: Heartbeat and LifeSpan are at least a millisecond, which is what clients are told them in", ErrConfig)
	}
	return nil
}
