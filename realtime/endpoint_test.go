package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestEndpointAnswersBadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", MaxTopicLength+1)
	var many strings.Builder
	for i := range 33 {
		fmt.Fprintf(&many, "topic=t%d&", i)
	}
	tests := []struct {
		name, method, query string
		header              map[string]string
		body                string
		status              int
		code                string
	}{
		{name: "post", method: "POST", query: "topic=a", status: 405, code: "method-not-allowed"},
		{name: "delete", method: "DELETE", query: "topic=a", status: 405, code: "method-not-allowed"},
		{name: "head", method: "HEAD", query: "topic=a", status: 405},
		{name: "no topic", status: 400, code: "topic-missing"},
		{name: "empty topic", query: "topic=", status: 400, code: "topic-invalid"},
		{name: "topic with newline", query: "topic=a%0Ab", status: 400, code: "topic-invalid"},
		{name: "topic with NUL", query: "topic=a%00b", status: 400, code: "topic-invalid"},
		{name: "topic not UTF-8", query: "topic=a%ffb", status: 400, code: "topic-invalid"},
		{name: "topic with asterisk", query: "topic=messages/*", status: 400, code: "topic-invalid"},
		{name: "topic with empty segment", query: "topic=a//b", status: 400, code: "topic-invalid"},
		{name: "topic too long", query: "topic=" + long, status: 400, code: "topic-too-long"},
		{name: "too many topics", query: strings.TrimSuffix(many.String(), "&"), status: 400, code: "topics-too-many"},
		{name: "unknown parameter", query: "topic=a&stream=b", status: 400, code: "parameter-unknown"},
		{name: "malformed query", query: "topic=%zz", status: 400, code: "query-malformed"},
		{name: "body", query: "topic=a", body: "x", status: 400, code: "body-not-allowed"},
		{name: "accept", query: "topic=a", header: map[string]string{"Accept": "application/json"}, status: 406, code: "not-acceptable"},
		{name: "large request", query: "topic=a", header: map[string]string{"X-Large": strings.Repeat("x", 17<<10)}, status: 431, code: "request-too-large"},
		{name: "no credential", query: "topic=a", header: map[string]string{"User": ""}, status: 401, code: "unauthenticated"},
		{name: "unknown topic", query: "topic=a&topic=unknown", status: 403, code: "topic-forbidden"},
		{name: "forbidden topic", query: "topic=a&topic=secret", status: 403, code: "topic-forbidden"},
	}
	s := newSite(t, Config{})
	bodies := map[string]string{}
	for _, tt := range tests {
		var body io.Reader
		if tt.body != "" {
			body = strings.NewReader(tt.body)
		}
		r, err := http.NewRequest(tt.method, s.url+"/v1/events?"+tt.query, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", "ann")
		for k, v := range tt.header {
			r.Header.Set(k, v)
		}
		res, err := s.srv.Client().Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if res.StatusCode != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, res.StatusCode, tt.status)
			res.Body.Close()
			continue
		}
		raw, _ := io.ReadAll(res.Body)
		res.Body.Close()
		bodies[tt.name] = string(raw)
		if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: content type %q", tt.name, got)
		}
		if tt.status == 405 && res.Header.Get("Allow") != "GET" {
			t.Errorf("%s: Allow is %q", tt.name, res.Header.Get("Allow"))
		}
		if tt.status == 401 && res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", tt.name)
		}
		if tt.method == "HEAD" {
			continue
		}
		var p problem
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Errorf("%s: %v in %s", tt.name, err, raw)
		}
		if p.Code != tt.code || p.Status != tt.status || p.Title == "" || len(p.Detail) < 20 {
			t.Errorf("%s: problem %+v, want code %s", tt.name, p, tt.code)
		}
	}
	if bodies["unknown topic"] != bodies["forbidden topic"] {
		t.Error("an unknown and a forbidden topic are answered differently, which tells who asks what exists")
	}
	if n := s.hub.Stats().Connections; n != 0 {
		t.Errorf("%d connections after refusals", n)
	}
}

func TestEndpointStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	r := s.request(t.Context(), "ann", "backlog", "backlog", "messages/1")
	e := s.listen(t, r)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := e.res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	first := e.want("hello")
	var h hello
	if err := json.Unmarshal([]byte(first.data), &h); err != nil {
		t.Fatal(err)
	}
	st := s.hub.Stats()
	if h.Epoch != st.Epoch || h.Heartbeat != 15000 || h.LifeSpan < 54*60*1000 || h.LifeSpan > 66*60*1000 || h.Resumed {
		t.Errorf("hello is %+v", h)
	}
	if first.id != st.Epoch+"-0" {
		t.Errorf("id of hello is %q", first.id)
	}
	if st.Connections != 1 || st.Topics != 2 || st.ByUser["ann"] != 1 {
		t.Errorf("stats %+v", st)
	}

	n := Notification{Topic: "messages/1", ID: "1", Version: 7, Change: "updated", Freshness: Advisory("use-case:x")}
	if err := s.hub.Publish("t1", n); err != nil {
		t.Fatal(err)
	}
	ev := e.want("notification")
	const want = `{"topic":"messages/1","resource":"1","version":7,"change":"updated","freshness":{"mode":"advisory","authority":"use-case:x"}}`
	if ev.data != want || ev.id != st.Epoch+"-1" {
		t.Errorf("got %s %s, want %s", ev.id, ev.data, want)
	}
}

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	e := s.open(t, "ann", "backlog")
	if err := s.hub.Publish("t2", note("backlog", 9)); err != nil {
		t.Fatal(err)
	}
	if err := s.hub.Publish("t1", note("backlog", 1)); err != nil {
		t.Fatal(err)
	}
	if ev := e.want("notification"); !strings.Contains(ev.data, `"version":1,`) {
		t.Errorf("another tenant's notification arrived: %s", ev.data)
	}
}

// refused reads the problem of a request that got no stream: one would never end.
func refused(t *testing.T, res *http.Response) (p problem) {
	t.Helper()
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		t.Fatal("a stream was served")
	}
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Errorf("read a refusal: %v", err)
	}
	return p
}

func TestConnectionBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{MaxConnections: 3, MaxPerUser: 2})
	s.open(t, "ann", "a")
	last := s.open(t, "ann", "a")

	// An API client is told by status.
	res, err := s.srv.Client().Do(s.request(t.Context(), "ann", "a"))
	if err != nil {
		t.Fatal(err)
	}
	p := refused(t, res)
	wait, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	if res.StatusCode != 429 || p.Code != "connections-exhausted-user" || wait < 5 || wait > 16 {
		t.Errorf("third connection of a user: %d %+v, retry after %d", res.StatusCode, p, wait)
	}

	s.open(t, "bob", "a")
	res, err = s.srv.Client().Do(s.request(t.Context(), "cid", "a"))
	if err != nil {
		t.Fatal(err)
	}
	p = refused(t, res)
	if res.StatusCode != 429 || p.Code != "connections-exhausted" {
		t.Errorf("connection past the host's bound: %d %+v", res.StatusCode, p)
	}

	// A browser's EventSource would never come back after an error status.
	r := s.request(t.Context(), "cid", "a")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Sec-Fetch-Mode", "cors")
	res, err = s.srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	reader := newParser(res.Body, 1024, "")
	ev, err := reader.next()
	if res.StatusCode != 200 || err != nil || ev.name != "bye" || reader.retry < 5*time.Second || reader.retry > 15*time.Second {
		t.Errorf("browser past the bound: %d %+v %v, retry %v", res.StatusCode, ev, err, reader.retry)
	}
	if _, err := reader.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the refusal of a browser goes on: %v", err)
	}
	res.Body.Close()

	st := s.hub.Stats()
	if st.Connections != 3 || st.Refused["user-full"] != 1 || st.Refused["host-full"] != 2 {
		t.Errorf("stats %+v", st)
	}

	// A place that becomes free is given away.
	last.close()
	eventually(t, "a free place", func() bool { return s.hub.Stats().Connections == 2 })
	s.open(t, "cid", "a")
}

func TestAuthorizationFault(t *testing.T) {
	t.Parallel()
	hub, err := NewHub(Config{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		authorize func(*http.Request, []Topic) (Principal, error)
		status    int
	}{
		{"none", nil, 401},
		{"fault", func(*http.Request, []Topic) (Principal, error) { return Principal{}, errors.New("store is closed") }, 503},
		{"no user", func(*http.Request, []Topic) (Principal, error) { return Principal{Tenant: "t"}, nil }, 401},
		{"expired", func(*http.Request, []Topic) (Principal, error) {
			return Principal{User: "u", Expires: time.Now().Add(-time.Second)}, nil
		}, 401},
	}
	for _, tt := range tests {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		(&Endpoint{Hub: hub, Authorize: tt.authorize}).ServeHTTP(w, httptest.NewRequest("GET", "/?topic=a", nil))
		if w.Code != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, w.Code, tt.status)
		}
		if strings.Contains(w.Body.String(), "store") {
			t.Errorf("%s: the answer tells of the inside: %s", tt.name, w.Body)
		}
	}

	// Without deadlines no connection is admitted.
	w := httptest.NewRecorder()
	(&Endpoint{Hub: hub, Authorize: byHeader}).ServeHTTP(w, httptest.NewRequest("GET", "/?topic=a", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "streaming-unsupported") {
		t.Errorf("a ResponseWriter without deadlines: %d %s", w.Code, w.Body)
	}
}

type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// wrapped hides what the connection can do behind Unwrap, as middleware does.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestEndpointBehindMiddlewareAndServerTimeouts(t *testing.T) {
	t.Parallel()
	hub, err := NewHub(Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Endpoint{Hub: hub, Authorize: byHeader}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.ServeHTTP(wrapped{w}, r)
	}))
	srv.Config.WriteTimeout = 50 * time.Millisecond
	srv.Config.ReadTimeout = 50 * time.Millisecond
	srv.Start()
	s := &site{hub: hub, url: srv.URL, srv: srv}
	t.Cleanup(s.close)
	ear := s.open(t, "ann", "a")
	time.Sleep(120 * time.Millisecond) // both time-outs of the server pass
	if err := hub.Publish("t1", note("a", 1)); err != nil {
		t.Fatal(err)
	}
	ear.want("notification")
}

func newHTTP2Site(t *testing.T, cfg Config) *site {
	t.Helper()
	hub, err := NewHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(&Endpoint{Hub: hub, Authorize: byHeader})
	srv.EnableHTTP2 = true
	srv.Config.ConnContext = ConnContext
	srv.StartTLS()
	s := &site{hub: hub, url: srv.URL, srv: srv}
	t.Cleanup(s.close)
	return s
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := newHTTP2Site(t, Config{WriteTimeout: 2 * time.Second})
	ear := s.open(t, "ann", "a")
	if ear.res.ProtoMajor != 2 {
		t.Fatalf("protocol %s", ear.res.Proto)
	}
	for v := range int64(2) {
		s.publish(t, note("a", v+1))
		ear.want("notification")
		time.Sleep(2100 * time.Millisecond) // a deadline that were left armed would reset the stream
	}
	go func() { _ = s.hub.Drain(context.Background()) }()
	events := ear.ended()
	if len(events) != 1 || events[0].name != "bye" || events[0].data != `{"reason":"drain"}` {
		t.Errorf("end of the stream: %+v", events)
	}
}

// A stream that is not read ends by itself; others of the same TCP connection go on.
func TestHungHTTP2Stream(t *testing.T) {
	t.Parallel()
	s := newHTTP2Site(t, Config{WriteTimeout: 3 * time.Second})
	s.srv.Client().Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	hung := s.open(t, "ann", "a")
	healthy := s.open(t, "bob", "b")
	version := int64(0)
	eventually(t, "the hung stream is closed", func() bool {
		version++
		s.publish(t, big("a", version), note("b", version))
		healthy.want("notification")
		return s.hub.Stats().Closed[ReasonLagging] == 1
	})
	if hung.res.ProtoMajor != 2 {
		t.Fatalf("protocol %s", hung.res.Proto)
	}
	s.publish(t, note("b", version+1))
	healthy.want("notification")
	if n := s.hub.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestPublishRefusesBadNotifications(t *testing.T) {
	t.Parallel()
	hub, err := NewHub(Config{})
	if err != nil {
		t.Fatal(err)
	}
	huge := note("a", 1)
	huge.Change = strings.Repeat("x", 17<<10)
	half := note("a", 1)
	half.Freshness = Freshness{Mode: ModeAdvisory}
	tests := []struct {
		n    Notification
		want error
	}{
		{note("", 1), ErrTopic},
		{note("a\nid: 5", 1), ErrTopic},
		{note("a", -1), ErrVersion},
		{Notification{Topic: "a", Version: 1}, ErrFreshness},
		{half, ErrFreshness},
		{huge, ErrEventTooLarge},
	}
	for _, tt := range tests {
		if err := hub.Publish("t1", tt.n, note("b", 1)); !errors.Is(err, tt.want) {
			t.Errorf("publish %.60v: %v, want %v", tt.n, err, tt.want)
		}
	}
	if n := hub.Stats().Published; n != uint64(len(tests)) {
		t.Errorf("%d published beside those refused, want %d", n, len(tests))
	}
	if _, err := NewHub(Config{MaxPerUser: -1}); !errors.Is(err, ErrConfig) {
		t.Errorf("negative bound: %v", err)
	}
}
