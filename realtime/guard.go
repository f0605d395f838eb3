package realtime

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
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
	errGone    = errors.New("the client has gone")
)

// guard confines r3labs/sse to what it is good for, writing events in their wire form. Used as its documentation shows, one
// client that hangs stops every other client of its stream, writing has no deadline, and ending a stream that has clients leaks
// goroutines. So each connection has a stream of its own, which nobody else waits for, and the order of taking it down is fixed.
type guard struct {
	server  *sse.Server
	timeout time.Duration // for writing one frame
}

func newGuard(timeout time.Duration) *guard {
	g := &guard{server: sse.New(), timeout: timeout}
	g.server.AutoReplay = false // its log is unbounded and numbers events by itself; history is the hub's
	g.server.AutoStream = false // a stream exists for as long as its subscriber
	g.server.SplitData = true
	g.server.BufferSize = credits + 2                                        // a bye and the end take no credit
	g.server.OnSubscribe = func(_ string, s *sse.Subscriber) { s.URL = nil } // it has been read
	// The library takes the subscriber out when the context of the request ends. A stream that is removed before leaks its goroutine.
	g.server.OnUnsubscribe = func(id string, _ *sse.Subscriber) { g.server.RemoveStream(id) }
	return g
}

// line is the wire of one connection.
type line struct {
	guard  *guard
	query  string // what the library reads the id from
	writer frameWriter
}

const idParameter = "stream="

func (l *line) id() string { return l.query[len(idParameter):] }

// listener is told how a line goes, on the goroutine that serves: begin once headers are out and the stream takes frames, flushed after each frame, failed
// once, with the first error of writing, and ended when r3labs/sse has stopped writing: nothing may be offered from then on.
type listener interface {
	begin()
	flushed()
	failed(error)
	ended()
}

// line prepares a connection's stream, and gives it an id.
func (g *guard) line(w http.ResponseWriter, r *http.Request) *line {
	l := &line{guard: g, query: idParameter + randomHex(16)}
	l.writer = frameWriter{ResponseWriter: w, line: l, closing: r.ProtoMajor == 1}
	return l
}

// serve writes the stream until it ends. ctx has to end soon after: it is the request's, which net/http ends when the handler has
// returned.
func (l *line) serve(ctx context.Context, to listener) {
	l.writer.to = to
	defer func() {
		to.ended()
		l.writer.last()
	}()
	l.guard.server.CreateStream(l.id())
	l.guard.server.ServeHTTP(&l.writer, l.request(ctx))
}

// request is one of ours for the library, which would answer a Last-Event-ID that is no number with 400, after which a browser
// never comes back. It is made apart because what it takes of the stack would be held for as long as the stream.
//
//go:noinline
func (l *line) request(ctx context.Context) *http.Request {
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{RawQuery: l.query}}
	return r.WithContext(ctx)
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
	switch {
	case l.guard.server.TryPublish(l.id(), e):
		return nil
	case l.guard.server.StreamExists(l.id()):
		return errCredits
	}
	return errGone
}

// hangUp cannot fail: where there is no room left, there is an end already, and where there is no stream yet, serve will find the
// writer dead.
func (l *line) hangUp() { l.guard.server.TryPublish(l.id(), &sse.Event{}) }

// dismiss leaves f to the writer: a frame that went through r3labs/sse would have to wait for those that are on their way.
func (l *line) dismiss(f frame) {
	l.writer.abort(&f)
	l.hangUp()
}

func (l *line) cut() {
	l.writer.abort(nil)
	l.hangUp()
}

func forged(s string) bool {
	for i := range len(s) {
		if s[i] == '\r' || s[i] == '\n' || s[i] == 0 {
			return true
		}
	}
	return false
}
