package realtime

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchDropsDuplicatesAndReorderings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{
			{status: 200, body: helloEvent("e", 0, false) +
				noteEvent("e", 1, "a", 5) + noteEvent("e", 2, "a", 5) + noteEvent("e", 3, "a", 4) + noteEvent("e", 4, "b", 1) +
				noteEvent("e", 5, "a", 6) + noteEvent("e", 6, "stranger", 9) + noteEvent("e", 7, "b", 0) + noteEvent("e", 8, "b", 0)},
			{status: 200, body: helloEvent("e", 8, true) + noteEvent("e", 9, "a", 6) + noteEvent("e", 10, "a", 7)},
			{status: 200, body: helloEvent("f", 3, false) + "id: f-3\nevent: reset\ndata: {\"reason\":\"epoch\"}\n\n" + noteEvent("f", 4, "a", 1)},
			stop,
		}}
		d := watching(s)
		if err := d.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.want(t, "start", "a5", "b1", "a6", "b0", "b0", "resumed", "a7", "lost", "a1")
		var ids []string
		for _, r := range s.requests {
			ids = append(ids, r.Header.Get("Last-Event-ID"))
		}
		if want := []string{"", "e-8", "e-10", "f-4"}; !slices.Equal(ids, want) {
			t.Errorf("sent Last-Event-ID %q, want %q", ids, want)
		}
	})
}

func TestWatchRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{stop}}
		d := watching(s)
		d.client.URL = "http://posthorn.test/v1/events?tenant=x"
		d.client.Header = http.Header{"Authorization": {"Bearer secret"}}
		if err := d.watch(t.Context(), "documents/ä b&c"); !errors.Is(err, ErrTopic) {
			t.Errorf("a topic with a space: %v", err)
		}
		if err := d.watch(t.Context(), "documents/ä&b=c", "backlog"); err != nil {
			t.Fatal(err)
		}
		r := s.requests[0]
		if got := r.URL.Query()["topic"]; !slices.Equal(got, []string{"documents/ä&b=c", "backlog"}) || r.URL.Query().Get("tenant") != "x" {
			t.Errorf("URL %s", r.URL)
		}
		if r.Method != "GET" || r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %s %v", r.Method, r.Header)
		}
		if strings.Contains(r.URL.String(), "secret") {
			t.Error("a credential in the URL")
		}
		if err := d.client.Watch(t.Context(), nil, nil); !errors.Is(err, ErrTopic) {
			t.Errorf("no topics: %v", err)
		}
		d.client.URL = "http://[::1"
		if err := d.watch(t.Context()); err == nil {
			t.Error("a URL that is none is watched")
		}
	})
}

func TestWatchStopsOrGoesOn(t *testing.T) {
	t.Parallel()
	good := step{status: 200, body: helloEvent("e", 0, false)}
	problemBody := `{"status":403,"code":"topic-forbidden","title":"Topic forbidden","detail":"Check the names."}`
	problemHeader := map[string]string{"Content-Type": "application/problem+json"}
	tests := []struct {
		name     string
		steps    []step
		requests int
		status   int // of the error; 0 for none
	}{
		{"204", []step{stop}, 1, 0},
		{"401", []step{{status: 401}}, 2, 401},
		{"403", []step{{status: 403, header: problemHeader, body: problemBody}}, 2, 403},
		{"401 once", []step{{status: 401}, good, stop}, 3, 0},
		{"401 after each good connection", []step{{status: 401}, good, {status: 401}, good, stop}, 5, 0},
		{"401 and 403", []step{{status: 401}, {status: 403}}, 2, 403},
		{"network errors", append(slices.Repeat([]step{{}}, 40), good, step{}, stop), 43, 0},
		{"faults of servers", []step{{status: 500}, {status: 502}, {status: 503}, {status: 504}, {status: 429}, {status: 408}, {status: 425}, stop}, 8, 0},
		{"404 at first", []step{{status: 404}}, 1, 404},
		{"404 for a while", []step{good, {status: 404}, {status: 400}, good, stop}, 5, 0},
		{"another content type at first", []step{{status: 200, header: map[string]string{"Content-Type": "text/html"}, body: "<p>log in"}}, 1, 200},
		{"another content type for a while", []step{good, {status: 200, header: map[string]string{"Content-Type": "text/html"}}, good, stop}, 4, 0},
		{"content type with parameters", []step{{status: 200, header: map[string]string{"Content-Type": "text/event-stream; charset=utf-8"}, body: good.body}, stop}, 2, 0},
		{"clean ends", append(slices.Repeat([]step{good}, 10), stop), 11, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				d := watching(s)
				d.client.Refresh = func(context.Context) (http.Header, error) {
					return http.Header{"Authorization": {"Bearer new"}}, nil
				}
				err := d.watch(t.Context())
				var status *StatusError
				switch {
				case tt.status == 0 && err != nil:
					t.Errorf("ended with %v", err)
				case tt.status != 0 && (!errors.As(err, &status) || status.Status != tt.status || !errors.Is(err, ErrStatus)):
					t.Errorf("ended with %v, want status %d", err, tt.status)
				}
				if len(s.requests) != tt.requests {
					t.Errorf("%d requests, want %d", len(s.requests), tt.requests)
				}
				if tt.name == "401 once" && s.requests[1].Header.Get("Authorization") != "Bearer new" {
					t.Error("the new credential was not sent")
				}
				if tt.name == "403" && (status.Code != "topic-forbidden" || !strings.Contains(err.Error(), "Check the names.")) {
					t.Errorf("the problem is lost: %v", err)
				}
			})
		})
	}
}

func TestWatchWithoutRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{status: 401}}}
		if err := watching(s).watch(t.Context()); !errors.Is(err, ErrStatus) || len(s.requests) != 1 {
			t.Errorf("%v after %d requests", err, len(s.requests))
		}
		s = &script{steps: []step{{status: 401}}}
		d := watching(s)
		expired := errors.New("refresh token expired")
		d.client.Refresh = func(context.Context) (http.Header, error) { return nil, expired }
		if err := d.watch(t.Context()); !errors.Is(err, ErrStatus) || !errors.Is(err, expired) || len(s.requests) != 1 {
			t.Errorf("%v after %d requests", err, len(s.requests))
		}
	})
}

func TestWatchReportsWhatItSkips(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{status: 200, body: helloEvent("e", 0, false) +
			"id: e-1\nevent: notification\ndata: " + strings.Repeat("x", 100<<10) + "\n\n" +
			noteEvent("e", 2, "a", 1) +
			"id: e-3\nevent: notification\ndata: {\"topic\":\n\n" +
			"id: e-4\nevent: notification\ndata: {\"topic\":\"a\",\"version\":2,\"freshness\":{\"mode\":\"guess\"}}\n\n" +
			"id: e-5\nevent: something-new\ndata: {}\n\n" +
			noteEvent("e", 6, "a", 3) +
			"id: e-7\nevent: reset\ndata: {\"reason\":\"history\"}\n\n"}, stop}}
		d := watching(s)
		if err := d.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.want(t, "start", "lost", "a1", "lost", "lost", "a3")
		if got := s.requests[1].Header.Get("Last-Event-ID"); got != "e-7" {
			t.Errorf("resumes at %q", got)
		}
	})
}

// A proxy that takes away Last-Event-ID makes the server believe that the client is new. The client knows better.
func TestWatchTakesAnUnansweredReconnectionAsAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{
			{status: 200, body: helloEvent("e", 0, false)}, {status: 200, body: helloEvent("e", 9, false)}, stop,
		}}
		d := watching(s)
		if err := d.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.want(t, "start", "lost")
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, steps := range map[string][]step{
		"while connected": {{status: 200, body: helloEvent("e", 0, false), open: true}},
		"while silent":    {{status: 200, open: true}},
		"while waiting":   {{status: 503, header: map[string]string{"Retry-After": "3000"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Second, func() { cancel(enough) })
				began := time.Now()
				err := watching(&script{steps: steps}).watch(ctx)
				if !errors.Is(err, enough) || time.Since(began) != 10*time.Second {
					t.Errorf("ended after %v with %v", time.Since(began), err)
				}
			})
		})
	}
}

// The client against the real endpoint, over a unix socket: the connection is cut, the hub is replaced, and each time the caller
// hears what it needs.
func TestWatchOverUnixSocket(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hub, err := NewHub(Config{})
	if err != nil {
		t.Fatal(err)
	}
	current := func() *Hub { mu.Lock(); defer mu.Unlock(); return hub }
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&Endpoint{Hub: current(), Authorize: byHeader}).ServeHTTP(w, r)
	}))
	srv.Listener.Close()
	srv.Listener = listener
	srv.Config.ConnContext = ConnContext
	srv.Start()
	defer srv.Close()

	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	told := make(chan any, 100)
	c := &Client{
		URL: "http://posthorn/v1/events", HTTP: &http.Client{Transport: transport},
		Header:     http.Header{"User": {"ann"}, "Tenant": {"t1"}},
		OnGap:      func(g Gap) { told <- g },
		MinBackoff: time.Millisecond,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Watch(ctx, []Topic{"a"}, func(n Notification) { told <- n }) }()
	want := func(v any) {
		t.Helper()
		if got := <-told; !reflect.DeepEqual(got, v) {
			t.Fatalf("told %v, want %v", got, v)
		}
	}
	publish := func(n Notification) {
		if err := current().Publish("t1", n); err != nil {
			t.Fatal(err)
		}
	}
	want(GapStart)
	publish(note("a", 1))
	want(note("a", 1))

	current().Revoke(Grant{Tenant: "t1"}, "cut")
	publish(note("a", 2))
	want(GapResumed)
	want(note("a", 2))

	old := current()
	mu.Lock()
	if hub, err = NewHub(Config{}); err != nil {
		t.Fatal(err)
	}
	mu.Unlock()
	if err := old.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(GapLost)
	publish(note("a", 1)) // versions of the new epoch
	want(note("a", 1))

	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("watch: %v", err)
	}
	if err := current().Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
