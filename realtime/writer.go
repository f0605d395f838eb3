package realtime

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// errLagging: the client took no more within the time-out.
var errLagging = errors.New("client is lagging")

// cursorMark begins the comments that the writer turns into a heartbeat with an id. An event stream can move the client's last
// event id without an event, but r3labs/sse writes an id only beside data.
const cursorMark = "cursor "

// What every stream says of itself. It is shared, and never changed.
var (
	connectionClose = []string{"close"}
	streamHeaders   = http.Header{
		"Content-Type":      {"text/event-stream"},
		"Cache-Control":     {"no-store, no-transform"},
		"X-Accel-Buffering": {"no"},
	}
)

// lastGasp bounds how long the end of a response may take, and before it an event whose writing had begun.
const lastGasp = time.Second

// buffers are lent to connections that are writing, so that idle ones hold none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// frameWriter stands between r3labs/sse and the connection. It collects a frame and writes it whole, under a deadline that is
// armed only meanwhile, since one that is left armed resets idle HTTP/2 streams. The first error ends the stream; the library
// itself ignores them.
type frameWriter struct {
	http.ResponseWriter
	line *line
	to   listener
	lent *[]byte // nil while no frame is being collected
	err  error

	mu      sync.Mutex // guards what abort shares with the goroutine that writes
	words   *frame     // the last ones, where there are any
	dead    bool
	armed   bool
	isOpen  bool
	closing bool // close the HTTP/1 connection afterwards: its deadline and send buffer are not fit for other requests
}

func (w *frameWriter) WriteHeader(status int) {
	h := w.Header()
	h.Del("Connection") // the library says keep-alive, which HTTP/2 forbids
	if w.closing {
		h["Connection"] = connectionClose
	}
	// The response keeps its headers for as long as the stream lives, so all streams share their values.
	for name, values := range streamHeaders {
		h[name] = values
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write collects. The library writes each line of a frame by a call of its own.
func (w *frameWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.lent == nil {
		w.lent = buffers.Get().(*[]byte)
	}
	buf := *w.lent
	switch {
	case bytes.Equal(p, []byte("id: \n")):
		// an event without id, which would reset the client's cursor
	case bytes.HasPrefix(p, []byte(": "+cursorMark)):
		buf = append(buf, ": heartbeat\nid: "...)
		buf = append(buf, p[len(": "+cursorMark):]...)
	default:
		buf = append(buf, p...)
	}
	*w.lent = buf
	return len(p), nil
}

func (w *frameWriter) release() {
	if w.lent != nil {
		*w.lent = (*w.lent)[:0]
		buffers.Put(w.lent)
		w.lent = nil
	}
}

// Flush writes the collected frame.
func (w *frameWriter) Flush() {
	if w.err != nil {
		return
	}
	began := time.Now()
	if w.err = w.arm(); w.err == nil {
		if w.lent != nil {
			_, w.err = w.ResponseWriter.Write(*w.lent)
		}
		if w.err == nil {
			w.err = w.control().Flush()
		}
		w.disarm()
	}
	if w.err != nil {
		if errors.Is(w.err, os.ErrDeadlineExceeded) || time.Since(began) >= w.line.guard.timeout {
			w.err = fmt.Errorf("%w: %w", errLagging, w.err)
		}
		w.release()
		w.to.failed(w.err)
		w.line.hangUp()
		return
	}
	if !w.isOpen {
		w.isOpen = true
		w.to.begin()
		return
	}
	w.release()
	w.to.flushed()
}

var errCut = errors.New("stream was cut")

func (w *frameWriter) arm() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errCut
	}
	w.armed = true
	return w.control().SetWriteDeadline(time.Now().Add(w.line.guard.timeout))
}

func (w *frameWriter) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	if !w.dead && w.err == nil {
		w.err = w.control().SetWriteDeadline(time.Time{})
	}
}

// abort lets nothing more out, from any goroutine, but the last words. A write that has begun is given up, at once where there are
// none: half an event before them would make them part of it.
func (w *frameWriter) abort(words *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.words = true, words
	switch {
	case !w.armed:
	case words == nil:
		_ = w.control().SetWriteDeadline(time.Unix(1, 0))
	default:
		_ = w.control().SetWriteDeadline(time.Now().Add(w.gasp()))
	}
}

func (w *frameWriter) control() *http.ResponseController {
	return http.NewResponseController(w.ResponseWriter)
}

func (w *frameWriter) gasp() time.Duration { return min(w.line.guard.timeout, lastGasp) }

// last says the last words, and bounds what the server itself writes when the handler has returned. After it, the connection is the
// server's again.
func (w *frameWriter) last() {
	w.mu.Lock()
	words := w.words
	w.dead, w.armed = true, words != nil
	_ = w.control().SetWriteDeadline(time.Now().Add(w.gasp()))
	w.mu.Unlock()
	if words == nil {
		return
	}
	if w.err == nil || errors.Is(w.err, errCut) {
		_, _ = fmt.Fprintf(w.ResponseWriter, "event: %s\ndata: %s\n\n", words.name, words.data)
		_ = w.control().Flush()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
}
