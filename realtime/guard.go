package realtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/r3labs/sse/v2"
)

// credits is how many frames of one connection may be on their way: handed to the wire, and not yet flushed. It must stay far
// below the 64 that a subscriber of r3labs/sse buffers, since its stream blocks, for ever, on a subscriber that is full.
const credits = 4

// wire is all that a connection needs of an SSE server. Its methods are called under the connection's mutex and never block.
type wire interface {
	// offer hands over a frame. It fails where the frame could forge others, or where more frames are on their way than
	// credits allow.
	offer(frame) error
	// hangUp ends the stream when what was offered before has been written. Nothing may be offered after it.
	hangUp()
	// dismiss ends the stream: what has not been written yet never is, but for f, if the client takes it soon.
	dismiss(f frame)
	// cut ends the stream at once: what has not been written yet never is.
	cut()
}

// frame is one event, or a comment where data is empty.
type frame struct {
	id    string
	name  string
	data  []byte
	retry time.Duration
	// cursor: the frame is a heartbeat that moves the client's last event id to id without dispatching an event.
	cursor bool
}

var (
	errForged  = errors.New("CR, LF or NUL in a frame")
	errEmpty   = errors.New("frame without data")
	errCredits = errors.New("more frames on their way than credits")
)

// guard confines r3labs/sse to what it is good for, writing events in their wire form. Used as its documentation shows, one
// client that hangs stops every other client of its stream, writing has no deadline, and ending a stream that has clients leaks
// goroutines. So each connection has a stream of its own, which nobody else waits for, and the order of taking it down is fixed.
type guard struct {
	server *sse.Server

	mu   sync.Mutex
	gone map[string]*line // those whose only subscriber is not out of its stream yet, by stream id
}

func newGuard() *guard {
	g := &guard{server: sse.New(), gone: map[string]*line{}}
	g.server.AutoReplay = false // its log is unbounded and numbers events by itself; history is the hub's
	g.server.AutoStream = false // a stream exists for as long as its connection is served
	g.server.SplitData = true
	g.server.BufferSize = credits + 4 // and as many for hello, reset, bye and the end
	g.server.OnUnsubscribe = func(id string, _ *sse.Subscriber) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if l := g.gone[id]; l != nil {
			delete(g.gone, id)
			l.gone.Done()
		}
	}
	return g
}

// line is the wire of one connection.
type line struct {
	guard  *guard
	id     string
	ctx    context.Context
	cancel context.CancelFunc
	writer frameWriter
	gone   sync.WaitGroup // zero when the subscriber is out of the stream
}

// listener is told how a line goes, on the goroutine that serves: begin once headers are out and the stream takes frames, flushed after each frame, failed
// once, with the first error of writing, and ended when r3labs/sse has stopped writing: nothing may be offered from then on.
type listener interface {
	begin()
	flushed()
	failed(error)
	ended()
}

// line prepares a connection's stream.
func (g *guard) line(id string, w http.ResponseWriter, r *http.Request, timeout time.Duration) *line {
	ctx, cancel := context.WithCancel(r.Context())
	l := &line{guard: g, id: id, ctx: ctx, cancel: cancel}
	l.writer = frameWriter{
		ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout, closing: r.ProtoMajor == 1,
	}
	return l
}

// serve writes the stream until it ends.
func (l *line) serve(to listener) {
	l.writer.to, l.writer.cancel = to, l.cancel

	l.gone.Add(1)
	l.guard.mu.Lock()
	l.guard.gone[l.id] = l
	l.guard.mu.Unlock()
	l.guard.server.CreateStream(l.id)
	defer func() {
		to.ended()
		l.cancel()
		l.gone.Wait() // a stream that is removed before its subscriber has left it leaks the subscriber's goroutine
		l.guard.server.RemoveStream(l.id)
		l.writer.last()
	}()

	// The library gets a request of ours: it would answer a Last-Event-ID that is no number with 400, after which a browser never
	// comes back.
	r := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{RawQuery: "stream=" + l.id},
	}
	l.guard.server.ServeHTTP(&l.writer, r.WithContext(l.ctx))
}

func (l *line) offer(f frame) error {
	if forged(f.id) || forged(f.name) || bytes.ContainsAny(f.data, "\r\n\x00") {
		return errForged
	}
	e := &sse.Event{ID: []byte(f.id)}
	switch {
	case f.cursor:
		e.ID, e.Comment = nil, []byte(cursorMark+f.id)
	case len(f.data) == 0:
		return errEmpty // it would end the stream
	default:
		e.Event, e.Data = []byte(f.name), f.data
		if f.retry > 0 {
			e.Retry = strconv.AppendInt(nil, f.retry.Milliseconds(), 10)
		}
	}
	if !l.guard.server.TryPublish(l.id, e) {
		return errCredits
	}
	return nil
}

func (l *line) hangUp() {
	if !l.guard.server.TryPublish(l.id, &sse.Event{}) {
		l.cut()
	}
}

// dismiss leaves f to the writer: a frame that went through r3labs/sse would have to wait for those that are on their way.
func (l *line) dismiss(f frame) {
	l.writer.abort(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", f.name, f.data))
	l.cancel()
}

func (l *line) cut() {
	l.writer.abort(nil)
	l.cancel()
}

func forged(s string) bool {
	for i := range len(s) {
		if s[i] == '\r' || s[i] == '\n' || s[i] == 0 {
			return true
		}
	}
	return false
}
