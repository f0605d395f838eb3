package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/outbox"
	"golang.org/x/net/dns/dnsmessage"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	var answer atomic.Value
	type reply struct {
		status     int
		retryAfter string
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		reply := answer.Load().(reply)
		if reply.retryAfter != "" {
			w.Header().Set("Retry-After", reply.retryAfter)
		}
		w.WriteHeader(reply.status)
		if reply.status != 204 && reply.status != 304 {
			_, _ = fmt.Fprintf(w, "it is\x00 %d\n\x1b[31mred\u202e", reply.status)
		}
	}))
	defer server.Close()
	w := register(t, Config{URL: server.URL, RetryAfterCap: time.Hour})
	for _, test := range []struct {
		reply
		class outbox.Class
		wait  time.Duration
	}{
		{reply{200, ""}, outbox.Delivered, 0}, {reply{201, ""}, outbox.Delivered, 0}, {reply{202, "9"}, outbox.Delivered, 0}, {reply{204, ""}, outbox.Delivered, 0},
		{reply{299, ""}, outbox.Delivered, 0},
		{reply{300, ""}, outbox.Rejected, 0}, {reply{301, ""}, outbox.Rejected, 0}, {reply{302, ""}, outbox.Rejected, 0}, {reply{304, ""}, outbox.Rejected, 0},
		{reply{307, ""}, outbox.Rejected, 0}, {reply{308, "5"}, outbox.Rejected, 0}, {reply{400, ""}, outbox.Rejected, 0}, {reply{401, ""}, outbox.Rejected, 0},
		{reply{404, ""}, outbox.Rejected, 0}, {reply{409, ""}, outbox.Rejected, 0}, {reply{413, "5"}, outbox.Rejected, 0}, {reply{422, ""}, outbox.Rejected, 0}, {reply{499, ""}, outbox.Rejected, 0},
		{reply{408, ""}, outbox.Failed, 0}, {reply{425, "5"}, outbox.Failed, 0}, {reply{500, "5"}, outbox.Failed, 0}, {reply{502, ""}, outbox.Failed, 0}, {reply{504, ""}, outbox.Failed, 0},
		{reply{599, ""}, outbox.Failed, 0}, {reply{600, ""}, outbox.Failed, 0}, {reply{999, ""}, outbox.Failed, 0},
		{reply{410, ""}, outbox.Gone, 0}, {reply{410, "5"}, outbox.Gone, 0},
		{reply{429, ""}, outbox.Throttled, 0}, {reply{429, "7"}, outbox.Throttled, 7 * time.Second}, {reply{429, "soon"}, outbox.Throttled, 0},
		{reply{429, "99999999999999999999"}, outbox.Throttled, time.Hour},
		{reply{503, ""}, outbox.Failed, 0}, {reply{503, "junk"}, outbox.Failed, 0}, {reply{503, "-1"}, outbox.Failed, 0},
		{reply{503, "120"}, outbox.Throttled, 2 * time.Minute}, {reply{503, "0"}, outbox.Throttled, 0}, {reply{503, "86400"}, outbox.Throttled, time.Hour},
		{reply{503, "Fri, 31 Dec 1999 23:59:59 GMT"}, outbox.Throttled, 0}, {reply{503, "Fri, 31 Dec 2199 23:59:59 GMT"}, outbox.Throttled, time.Hour},
	} {
		answer.Store(test.reply)
		err := w.Deliver(t.Context(), orderPlaced("{}"))
		if test.class == outbox.Delivered {
			if err != nil {
				t.Errorf("%v: %v", test.reply, err)
			}
			continue
		}
		failure := new(outbox.Failure)
		if !errors.As(err, &failure) || failure.Class != test.class || failure.RetryAfter != test.wait || failure.Status != test.status {
			t.Errorf("%v: %+v (%v), want %s and %s", test.reply, failure, err, test.class, test.wait)
			continue
		}
		if want := fmt.Sprintf("it is %d [31mred", test.status); test.status != 304 && failure.Excerpt != want {
			t.Errorf("%v: excerpt %q, want %q", test.reply, failure.Excerpt, want)
		}
	}
}

func TestRedirectToItselfIsFollowedByNobody(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	defer server.Close()
	wantFailure(t, register(t, Config{URL: server.URL + "/hook"}).Deliver(t.Context(), orderPlaced("{}")), outbox.Rejected)
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestHostileTargets speaks to targets that break off, flood and stall, on bare connections.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	reset := func(conn *net.TCPConn) { _ = conn.SetLinger(0) }
	say := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) { readRequest(conn); _, _ = conn.Write([]byte(text)) }
	}
	// flood writes until the client has gone, and says how much it got rid of.
	flood := func(begin, more string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			readRequest(conn)
			_, _ = conn.Write([]byte(begin))
			chunk := []byte(strings.Repeat(more, 1024))
			for sent := 0; sent < 64<<20; {
				n, err := conn.Write(chunk)
				if err != nil {
					return
				}
				sent += n
			}
		}
	}
	for name, test := range map[string]struct {
		serve func(*net.TCPConn)
		class outbox.Class
	}{
		"closes before reading":     {func(*net.TCPConn) {}, outbox.Unreachable},
		"resets before reading":     {reset, outbox.Unreachable},
		"closes before the status":  {readRequestOnly, outbox.Unreachable},
		"resets before the status":  {func(conn *net.TCPConn) { readRequest(conn); reset(conn) }, outbox.Unreachable},
		"resets in the status line": {func(conn *net.TCPConn) { say("HTTP/1.1 20")(conn); reset(conn) }, outbox.Failed},
		"closes in the head":        {say("HTTP/1.1 200 OK\r\nContent-Le"), outbox.Failed},
		"speaks no HTTP":            {say("220 mail.example ESMTP\r\n"), outbox.Failed},
		"has an impossible status":  {say("HTTP/1.1 2x0 OK\r\n\r\n"), outbox.Failed},
		"switches protocols":        {say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), outbox.Failed},
		"floods with headers":       {flood("HTTP/1.1 200 OK\r\n", "X-Bomb: xxxxxxxxxxxxxxxx\r\n"), outbox.Failed},
		"floods with one header":    {flood("HTTP/1.1 200 OK\r\nX-Bomb: ", "xxxxxxxxxxxxxxxxxxxxxxxxx"), outbox.Failed},
		"floods with 1xx":           {flood("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), outbox.Failed},
		"floods with 100":           {flood("", "HTTP/1.1 100 Continue\r\n\r\n"), outbox.Failed},
		"closes after the head":     {say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), outbox.Delivered},
		"resets in the body": {func(conn *net.TCPConn) {
			say("HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nhalf")(conn)
			reset(conn)
		}, outbox.Delivered},
		"breaks its chunks":   {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), outbox.Delivered},
		"has no length":       {say("HTTP/1.0 200 OK\r\n\r\nall"), outbox.Delivered},
		"has a huge body":     {flood("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "xxxxxxxxxxxxxxxx"), outbox.Delivered},
		"has a huge error":    {flood("HTTP/1.1 500 No\r\n\r\n", "xxxxxxxxxxxxxxxx"), outbox.Failed},
		"fails, then resets":  {func(conn *net.TCPConn) { say("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf")(conn); reset(conn) }, outbox.Failed},
		"hints, then accepts": {say("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), outbox.Delivered},
		"speaks HTTP/9":       {say("HTTP/9.9 200 OK\r\n\r\n"), outbox.Delivered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := register(t, Config{URL: raw(t, test.serve)})
			err := w.Deliver(t.Context(), orderPlaced(`{"secret":"payload"}`))
			if test.class == outbox.Delivered {
				if err != nil {
					t.Fatalf("deliver: %v", err)
				}
				return
			}
			failure := wantFailure(t, err, test.class)
			if len(failure.Error()) > 400 || len(failure.Excerpt) > excerptBytes || strings.Contains(failure.Error(), "payload") {
				t.Errorf("failure: %v, excerpt %q", failure, failure.Excerpt)
			}
		})
	}
}

func readRequestOnly(conn *net.TCPConn) { readRequest(conn) }

// TestTimeOuts waits out the shortest total deadline in each phase; what is tested is the class, not the time.
func TestTimeOuts(t *testing.T) {
	t.Parallel()
	stall := func(begin string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			readRequest(conn)
			_, _ = conn.Write([]byte(begin))
			_, _ = io.Copy(io.Discard, conn) // until the client leaves
		}
	}
	drip := func(begin, more string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			readRequest(conn)
			_, err := conn.Write([]byte(begin))
			for err == nil {
				time.Sleep(20 * time.Millisecond)
				_, err = conn.Write([]byte(more))
			}
		}
	}
	for name, test := range map[string]struct {
		serve func(*net.TCPConn)
		class outbox.Class
	}{
		"never answers":        {stall(""), outbox.Failed},
		"stalls in the head":   {stall("HTTP/1.1 200 OK\r\n"), outbox.Failed},
		"drips its head":       {drip("HTTP/1.1 200 OK\r\n", "X: y\r\n"), outbox.Failed},
		"drips 1xx":            {drip("", "HTTP/1.1 102 Processing\r\n\r\n"), outbox.Failed},
		"stalls in the body":   {stall("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), outbox.Delivered},
		"drips its body":       {drip("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", "."), outbox.Delivered},
		"drips an error":       {drip("HTTP/1.1 500 No\r\nContent-Length: 99999\r\n\r\n", "."), outbox.Failed},
		"never reads the body": {func(conn *net.TCPConn) { time.Sleep(1500 * time.Millisecond) }, outbox.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := register(t, Config{URL: raw(t, test.serve), Timeout: time.Second})
			payload := "{}"
			if name == "never reads the body" {
				payload = "{" + strings.Repeat(" ", 8<<20) + "}" // more than the kernel's buffers take
			}
			err := w.Deliver(t.Context(), orderPlaced(payload))
			if test.class != outbox.Delivered {
				wantFailure(t, err, test.class)
			} else if err != nil {
				t.Fatalf("deliver: %v", err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	// A port that was just free refuses connections.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	port := netip.MustParseAddrPort(listener.Addr().String()).Port()
	listener.Close()

	plainServer := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plainServer.Close) // the subtests outlive this function
	badTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	badTLS.Config.ErrorLog = quiet
	badTLS.StartTLS() // its certificate is nobody's
	t.Cleanup(badTLS.Close)
	oldTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	oldTLS.Config.ErrorLog = quiet
	oldTLS.TLS = &tls.Config{MaxVersion: tls.VersionTLS11} //nolint:gosec // the point of it
	oldTLS.StartTLS()
	t.Cleanup(oldTLS.Close)
	stalledTLS := raw(t, func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) })

	for name, test := range map[string]struct {
		Config
		says string
	}{
		"connection refused": {Config{URL: fmt.Sprintf("http://127.0.0.1:%d/", port)}, "refused"},
		"NXDOMAIN":           {Config{URL: "http://gone.example/", Resolver: nameserver(t, false, dnsmessage.RCodeNameError)}, "no such host"},
		"SERVFAIL":           {Config{URL: "http://gone.example/", Resolver: nameserver(t, false, dnsmessage.RCodeServerFailure)}, "server misbehaving"},
		"no address":         {Config{URL: "http://gone.example/", Resolver: nameserver(t, false, dnsmessage.RCodeSuccess)}, "lookup gone.example"},
		"half refused, down": {Config{
			URL:      fmt.Sprintf("http://mixed.example:%d/", port),
			Egress:   egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
			Resolver: nameserver(t, false, dnsmessage.RCodeSuccess, netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")),
		}, "allowed addresses"},
		"silent DNS":          {Config{URL: "http://gone.example/", Resolver: nameserver(t, true, 0), Timeout: time.Second}, "time-out while connecting"},
		"unknown certificate": {Config{URL: badTLS.URL}, "x509"},
		"old TLS":             {Config{URL: oldTLS.URL}, "protocol version"},
		"no TLS":              {Config{URL: strings.Replace(plainServer.URL, "http:", "https:", 1)}, "TLS handshake"},
		"stalled TLS":         {Config{URL: strings.Replace(stalledTLS, "http:", "https:", 1), Timeout: time.Second}, "time-out while connecting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := wantFailure(t, register(t, test.Config).Deliver(t.Context(), orderPlaced("{}")), outbox.Unreachable)
			if !strings.Contains(failure.Error(), test.says) {
				t.Errorf("%q does not say %q", failure, test.says)
			}
		})
	}
}

// TestRefusedAddress resolves a name to a forbidden address: a failure that is charged, and that says what to do.
func TestRefusedAddress(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer server.Close()
	port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
	w := register(t, Config{
		URL:      fmt.Sprintf("http://rebound.example:%d/", port),
		Egress:   egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Resolver: nameserver(t, false, dnsmessage.RCodeSuccess, netip.MustParseAddr("127.0.0.1")),
	})
	failure := wantFailure(t, w.Deliver(t.Context(), orderPlaced("{}")), outbox.Failed)
	if !errors.Is(failure, egress.ErrRefused) || !strings.Contains(failure.Error(), `egress: {allow: ["127.0.0.0/8"]}`) {
		t.Errorf("failure: %v", failure)
	}
	if reached.Load() {
		t.Error("the target was reached")
	}
}

func TestCancelledHasNoClass(t *testing.T) {
	t.Parallel()
	stopping := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	url := raw(t, func(conn *net.TCPConn) { readRequest(conn); cancel(stopping); _, _ = io.Copy(io.Discard, conn) })
	err := register(t, Config{URL: url}).Deliver(ctx, orderPlaced("{}"))
	if failure := new(outbox.Failure); errors.As(err, &failure) || !errors.Is(err, context.Canceled) || !errors.Is(err, stopping) {
		t.Errorf("error %v", err)
	}
}

func TestErrorsHoldNoURL(t *testing.T) {
	t.Parallel()
	w := register(t, Config{URL: "http://gone.example/hook?key=hunter2", Resolver: nameserver(t, false, dnsmessage.RCodeNameError)})
	if err := w.Deliver(t.Context(), orderPlaced("{}")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}
