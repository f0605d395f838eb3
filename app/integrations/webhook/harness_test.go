package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/outbox"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// register returns a webhook that may reach loopback.
func register(t *testing.T, config Config) *Webhook {
	t.Helper()
	if config.Egress.Allow == nil {
		config.Egress = loopback
	}
	if config.Secrets == nil {
		config.Secrets = []Secret{GenerateSecret()}
	}
	w, err := New(config)
	if err != nil {
		t.Fatalf("new webhook: %v", err)
	}
	t.Cleanup(w.Close)
	return w
}

func orderPlaced(payload string) outbox.Delivery {
	return outbox.Delivery{
		ID: 11, Handler: "warehouse", Attempt: 3, Charged: 2, Fence: 4_294_967_299,
		Message: outbox.Message{
			ID: "0198c0de-0000-7000-8000-000000000001", Type: "order-placed", SchemaVersion: 2, Tenant: "main",
			ContentType: "application/json", Payload: []byte(payload),
			Headers: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "correlation": "c-1"},
		},
	}
}

// wantFailure checks an attempt's class and returns its failure.
func wantFailure(t *testing.T, err error, class outbox.Class) *outbox.Failure {
	t.Helper()
	failure := new(outbox.Failure)
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want a failure of class %s", err, class)
	}
	if failure.Class != class {
		t.Fatalf("class %s (%v), want %s", failure.Class, err, class)
	}
	return failure
}

// raw starts a TCP server that hands every connection to serve, and returns its URL.
func raw(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// One at a time is enough, and ends when the test does.
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			serve(conn.(*net.TCPConn))
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return "http://" + listener.Addr().String() + "/hook"
}

// readRequest reads until the request has surely arrived: its body ends with the marker "}".
func readRequest(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil || n > 0 && buf[n-1] == '}' {
			return
		}
	}
}

// nameserver returns a resolver that answers every question with code and addrs; silent never answers.
func nameserver(t *testing.T, silent bool, code dnsmessage.RCode, addrs ...netip.Addr) *net.Resolver {
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
			var message dnsmessage.Message
			if silent || message.Unpack(buf[:n]) != nil {
				continue
			}
			message.Response, message.RCode, message.Additionals = true, code, nil
			for _, addr := range addrs {
				if question := message.Questions[0]; question.Type == dnsmessage.TypeA {
					message.Answers = append(message.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: addr.As4()},
					})
				}
			}
			if reply, err := message.Pack(); err == nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
		if err == nil {
			// A cancelled look-up goes on reading until its own time-out.
			t.Cleanup(func() { conn.Close() })
		}
		return conn, err
	}}
}
