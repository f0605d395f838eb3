package realtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// site is a hub behind a real HTTP server on loopback.
type site struct {
	hub *Hub
	url string
	srv *httptest.Server

	mu      sync.Mutex
	clients []func() // end the clients that the test opened
}

func (s *site) opened(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, end)
}

// byHeader authorizes by what the test's request says about itself.
func byHeader(r *http.Request, topics []Topic) (Principal, error) {
	p := Principal{User: r.Header.Get("User"), Tenant: r.Header.Get("Tenant"), Session: r.Header.Get("Session")}
	if p.User == "" {
		return p, ErrUnauthenticated
	}
	for _, t := range topics {
		if strings.HasPrefix(string(t), "secret") || strings.HasPrefix(string(t), "unknown") {
			return p, fmt.Errorf("topic %q: %w", t, ErrForbidden)
		}
	}
	return p, nil
}

func newSite(t *testing.T, cfg Config) *site {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	hub, err := NewHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(&Endpoint{Hub: hub, Authorize: byHeader})
	srv.Config.ConnContext = ConnContext
	srv.Start()
	s := &site{hub: hub, url: srv.URL, srv: srv}
	t.Cleanup(s.close)
	return s
}

// close ends everything the site started, and may be called twice.
func (s *site) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_ = s.hub.Drain(ctx)
	s.mu.Lock()
	for _, end := range s.clients {
		end()
	}
	s.mu.Unlock()
	s.srv.Close()
	s.srv.Client().CloseIdleConnections()
}

func (s *site) request(ctx context.Context, user string, topics ...Topic) *http.Request {
	q := url.Values{}
	for _, t := range topics {
		q.Add("topic", string(t))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?"+q.Encode(), nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("User", user)
	r.Header.Set("Tenant", "t1")
	return r
}

// ear is a test's connection to a site.
type ear struct {
	t      testing.TB
	res    *http.Response
	parser *parser
	cancel context.CancelFunc
}

func (s *site) listen(t testing.TB, r *http.Request) *ear {
	t.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	res, err := s.srv.Client().Do(r.WithContext(ctx))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		cancel()
		t.Fatalf("answer %d: %s", res.StatusCode, body)
	}
	e := &ear{t: t, res: res, parser: newParser(res.Body, 64<<10, ""), cancel: cancel}
	s.opened(e.close)
	return e
}

func (s *site) open(t testing.TB, user string, topics ...Topic) *ear {
	t.Helper()
	e := s.listen(t, s.request(context.Background(), user, topics...))
	e.want("hello")
	return e
}

func (e *ear) close() { e.cancel(); e.res.Body.Close() }

func (e *ear) next() streamEvent {
	e.t.Helper()
	ev, err := e.parser.next()
	if err != nil {
		e.t.Fatalf("read event: %v", err)
	}
	return ev
}

func (e *ear) want(name string) streamEvent {
	e.t.Helper()
	ev := e.next()
	if ev.name != name {
		e.t.Fatalf("got event %s %s, want %s", ev.name, ev.data, name)
	}
	return ev
}

// ended reads to the end of the stream and returns the events on the way.
func (e *ear) ended() []streamEvent {
	e.t.Helper()
	var events []streamEvent
	for {
		ev, err := e.parser.next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			e.t.Fatalf("read to the end: %v", err)
		}
		events = append(events, ev)
	}
}

// deaf is a client that sends its request and never reads, with a small receive buffer.
func (s *site) deaf(t testing.TB, user string, topics ...Topic) net.Conn {
	t.Helper()
	d := net.Dialer{}
	c, err := d.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	s.opened(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	r := s.request(context.Background(), user, topics...)
	if err := r.Write(c); err != nil {
		t.Fatal(err)
	}
	// The answer's first line says that the connection was admitted; nothing is read after it.
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, status); err != nil || string(status) != "HTTP/1.1 200" {
		t.Fatalf("got %q, %v", status, err)
	}
	return c
}

func note(topic Topic, version int64) Notification {
	return Notification{Topic: topic, ID: "r", Version: version, Change: "updated", Freshness: Immediate()}
}

// big is a notification that fills a send buffer soon.
func big(topic Topic, version int64) Notification {
	n := note(topic, version)
	n.ID = strings.Repeat("x", 8<<10)
	return n
}

// eventually waits for a condition that other goroutines bring about. It has no time limit of its own: the test's holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for range 20 * 60 * 100 {
		if condition() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// pipes is a listener inside the process, which a synctest bubble can hold.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// inBubble makes a site for a synctest bubble; its client dials the pipes.
func inBubble(t *testing.T, cfg Config, wrap func(http.Handler) http.Handler) (*site, *http.Client) {
	t.Helper()
	hub, err := NewHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = &Endpoint{Hub: hub, Authorize: byHeader}
	if wrap != nil {
		h = wrap(h)
	}
	p := newPipes()
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(p) }()
	client := &http.Client{Transport: &http.Transport{DialContext: p.dial}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = hub.Drain(ctx)
		client.CloseIdleConnections()
		srv.Close()
		<-done
	})
	return &site{hub: hub, url: "http://pipe/", srv: &httptest.Server{Config: srv}}, client
}

func (s *site) listenBy(t testing.TB, client *http.Client, r *http.Request) *ear {
	t.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	res, err := client.Do(r.WithContext(ctx))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	e := &ear{t: t, res: res, parser: newParser(res.Body, 64<<10, ""), cancel: cancel}
	t.Cleanup(e.close)
	return e
}

// lines reads a response line by line.
func lines(r io.Reader) *bufio.Scanner { return bufio.NewScanner(r) }
