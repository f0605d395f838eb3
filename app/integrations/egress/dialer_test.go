package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"golang.org/x/net/dns/dnsmessage"
)

// resolver returns a resolver whose one name has the addresses that answer returns for each query in turn; none means NXDOMAIN.
func resolver(t *testing.T, answer func() []netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for DNS: %v", err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { server.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply, err := answerDNS(buf[:n], answer); err == nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answerDNS(query []byte, answer func() []netip.Addr) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	question := message.Questions[0]
	message.Response, message.RecursionAvailable, message.Additionals = true, true, nil
	if question.Type == dnsmessage.TypeA {
		addrs := answer()
		if addrs == nil {
			message.RCode = dnsmessage.RCodeNameError
		}
		for _, addr := range addrs {
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: addr.As4()},
			})
		}
	}
	return message.Pack()
}

// TestRebinding resolves one name to a public address when it is created and to loopback when it is dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer target.Close()
	port := netip.MustParseAddrPort(target.Listener.Addr().String()).Port()

	var queries atomic.Int32
	names := resolver(t, func() []netip.Addr {
		if queries.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	if err := (egress.Policy{}).CheckURL("http://rebound.example/"); err != nil {
		t.Fatalf("check the URL: %v", err)
	}
	if _, err := names.LookupHost(t.Context(), "rebound.example"); err != nil {
		t.Fatalf("first look-up: %v", err)
	}

	dialer := egress.Policy{}.Dialer(5*time.Second, names)
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	_, err := dialer.DialContext(t.Context(), "tcp", "rebound.example:"+portOf(address))
	if !errors.Is(err, egress.ErrRefused) {
		t.Fatalf("dial: %v, want ErrRefused", err)
	}
	if queries.Load() < 2 {
		t.Fatal("the second look-up never happened")
	}
	if reached.Load() {
		t.Fatal("the target was reached")
	}
}

func TestDialer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	defer listener.Close()
	port := portOf(netip.MustParseAddrPort(listener.Addr().String()))

	for _, host := range []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::1", "localhost", "169.254.169.254", ""} {
		conn, err := egress.Policy{}.Dialer(5*time.Second, nil).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
		}
		// A machine without IPv6 fails earlier, and just as well.
		if err == nil || !errors.Is(err, egress.ErrRefused) && !strings.Contains(host, ":") {
			t.Errorf("%q: %v, want ErrRefused", host, err)
		}
	}
	allowed := allow(t, "127.0.0.0/8")
	for host, reachable := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "0.0.0.0": false, "::": false} {
		conn, err := allowed.Dialer(5*time.Second, nil).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
		}
		if (err == nil) != reachable {
			t.Errorf("%q with loopback allowed: %v", host, err)
		}
	}
	if _, err := allowed.Dialer(time.Second, nil).DialContext(t.Context(), "udp", net.JoinHostPort("127.0.0.1", port)); err == nil {
		t.Error("a UDP dial was allowed")
	}
	if _, err := allowed.Dialer(time.Second, nil).DialContext(t.Context(), "unix", "/nonexistent"); err == nil {
		t.Error("a unix socket dial was allowed")
	}
}

// TestMixedAnswers dials a name with a refused and an allowed address: the allowed one is used.
func TestMixedAnswers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	defer listener.Close()
	dialer := allow(t, "127.0.0.1").Dialer(5*time.Second, resolver(t, func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}
	}))
	target := "mixed.example:" + portOf(netip.MustParseAddrPort(listener.Addr().String()))
	conn, err := dialer.DialContext(t.Context(), "tcp", target)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.1" {
		t.Errorf("connected to %s", got)
	}
	// When the allowed one is down, the target is down, and not forbidden.
	listener.Close()
	if _, err := dialer.DialContext(t.Context(), "tcp", target); err == nil || errors.Is(err, egress.ErrRefused) {
		t.Errorf("a dead target: %v", err)
	}
}

func portOf(address netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(address.String())
	return port
}
