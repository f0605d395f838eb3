package realtime

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// serveLine runs one line on a server of its own, and gives what it takes to play with it.
func serveLine(t *testing.T, opened func(l *line), flushed func()) (body io.ReadCloser, done chan struct{}) {
	t.Helper()
	g := newGuard(time.Minute)
	done = make(chan struct{})
	served := make(chan *line, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		l := g.line(w, r)
		served <- l
		l.serve(r.Context(), hooks{func() { opened(l) }, flushed})
	}))
	t.Cleanup(func() {
		srv.Close()
		l := <-served
		eventually(t, "the stream is gone", func() bool { return !g.server.StreamExists(l.id()) })
	})
	res, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res.Body, done
}

func TestGuardWireForm(t *testing.T) {
	t.Parallel()
	flushes := 0
	body, done := serveLine(t, func(l *line) {
		for _, f := range []frame{
			{id: "e-1", name: "hello", data: []byte(`{"a":1}`), retry: 1500 * time.Millisecond},
			{id: "e-2", name: "notification", data: []byte(`:not a comment`)},
			{name: "notification", data: []byte(`without id`)},
			{id: "e-3", cursor: true},
		} {
			if err := l.offer(f); err != nil {
				t.Error(err)
			}
		}
		l.hangUp()
	}, func() { flushes++ })
	got, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	const want = "id: e-1\ndata: {\"a\":1}\nevent: hello\nretry: 1500\n\n" +
		"id: e-2\ndata: :not a comment\nevent: notification\n\n" +
		"data: without id\nevent: notification\n\n" +
		": heartbeat\nid: e-3\n\n"
	if string(got) != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	<-done
	if flushes != 4 {
		t.Errorf("%d credits came back, want 4", flushes)
	}
}

func TestGuardRefusesForgery(t *testing.T) {
	t.Parallel()
	body, done := serveLine(t, func(l *line) {
		for _, f := range []frame{
			{id: "1\ndata: forged", name: "a", data: []byte("x")}, {id: "1\r", name: "a", data: []byte("x")},
			{id: "1\x00", name: "a", data: []byte("x")}, {id: "1", name: "a\nid: 2", data: []byte("x")},
			{id: "1", name: "a", data: []byte("x\rid: 2")}, {id: "1", name: "a", data: []byte("x\n\ndata: y")},
			{id: "1", name: "a", data: []byte("\x00")}, {id: "1\n", cursor: true},
		} {
			if err := l.offer(f); !errors.Is(err, errForged) {
				t.Errorf("%+v: %v", f, err)
			}
		}
		if err := l.offer(frame{id: "1", name: "a"}); !errors.Is(err, errEmpty) {
			t.Errorf("frame without data: %v", err)
		}
		l.hangUp()
	}, func() {})
	if got, err := io.ReadAll(body); err != nil || len(got) != 0 {
		t.Errorf("written: %q, %v", got, err)
	}
	<-done
}

// After cut, what was offered before stays unwritten.
func TestGuardCut(t *testing.T) {
	t.Parallel()
	body, done := serveLine(t, func(l *line) {
		if err := l.offer(frame{id: "1", name: "a", data: []byte("x")}); err != nil {
			t.Error(err)
		}
		l.cut()
		l.cut()
		l.hangUp()
	}, func() { t.Error("something was flushed") })
	if got, err := io.ReadAll(body); err != nil || len(got) != 0 {
		t.Errorf("written: %q, %v", got, err)
	}
	<-done
}

// Offering never blocks: what the library will not take now is refused.
func TestGuardNeverBlocks(t *testing.T) {
	t.Parallel()
	g := newGuard(time.Minute)
	l := g.line(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if err := l.offer(frame{id: "1", name: "a", data: []byte("x")}); !errors.Is(err, errGone) {
		t.Errorf("offer to a stream that is not there: %v", err)
	}
	l.hangUp()
	l.cut()
	g.server.CreateStream(l.id()) // its goroutine takes on what it can, and there is no subscriber to pass it to
	defer g.server.RemoveStream(l.id())
	for range 100 {
		if err := l.offer(frame{id: "1", name: "a", data: []byte("x")}); err != nil && !errors.Is(err, errCredits) {
			t.Errorf("offer to a stream that takes no more: %v", err)
		}
		l.hangUp()
	}
}

// A line that is cut before it is served ends as soon as it is.
func TestGuardCutBeforeServing(t *testing.T) {
	t.Parallel()
	g := newGuard(time.Minute)
	served := make(chan *line, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l := g.line(w, r)
		served <- l
		if r.URL.Path == "/dismissed" {
			l.dismiss(frame{name: "bye", data: []byte("x")})
		} else {
			l.cut()
		}
		l.serve(r.Context(), hooks{func() { t.Error("it was begun") }, func() { t.Error("something was flushed") }})
	}))
	defer srv.Close()
	for path, want := range map[string]string{"/cut": "", "/dismissed": "event: bye\ndata: x\n\n"} {
		res, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: written %q, %v", path, got, err)
		}
		l := <-served
		eventually(t, "the stream is gone", func() bool { return !g.server.StreamExists(l.id()) })
	}
}

// hooks are a listener that only cares for some of it.
type hooks struct{ onBegin, onFlushed func() }

func (h hooks) begin()       { h.onBegin() }
func (h hooks) flushed()     { h.onFlushed() }
func (h hooks) failed(error) {}
func (h hooks) ended()       {}
