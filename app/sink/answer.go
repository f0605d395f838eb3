package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// dripBytes is the length of a dripping body that nobody gave one.
const dripBytes = 64

// answer answers a delivery as its entry says, with the faults that only show on the wire.
func (s *Sink) answer(w http.ResponseWriter, r *http.Request, entry Entry, m Misbehaviour) {
	switch m.Reset {
	case ResetBefore:
		reset(w, "")
		return
	case ResetAfter:
		reset(w, fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: 4096\r\n\r\nthe rest never ",
			entry.Status, http.StatusText(entry.Status)))
		return
	case NoReset:
	}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	if m.RetryAfter != "" {
		header.Set("Retry-After", m.RetryAfter)
	}
	if entry.Status >= 300 && entry.Status < 400 {
		header.Set("Location", r.URL.Path)
	}
	switch {
	case entry.Status == http.StatusNoContent || entry.Status == http.StatusResetContent || entry.Status == http.StatusNotModified:
		w.WriteHeader(entry.Status)
	case m.Drip > 0 || m.BodyBytes > 0:
		body(w, r, entry.Status, m)
	default:
		// Encoded by hand into memory: a sender that left is no error here.
		text, _ := json.Marshal(map[string]any{
			"handled": entry.Handled, "repeated": entry.Repeated, "verified": entry.Verified, "problem": entry.Problem,
		})
		header.Set("Content-Type", "application/json")
		w.WriteHeader(entry.Status)
		_, _ = w.Write(append(text, '\n'))
	}
}

// body writes a body that is huge, slow, or both, until the sender has enough.
func body(w http.ResponseWriter, r *http.Request, status int, m Misbehaviour) {
	length := m.BodyBytes
	if length == 0 {
		length = dripBytes
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(status)
	flush := http.NewResponseController(w)
	if m.Drip > 0 {
		// A drip that outlasts the server's write time-out is the point of it.
		_ = flush.SetWriteDeadline(time.Time{})
		for range length {
			if flush.Flush() != nil || r.Context().Err() != nil {
				return
			}
			wait(r.Context(), m.Drip)
			if _, err := w.Write([]byte(".")); err != nil {
				return
			}
		}
		return
	}
	chunk := bytes.Repeat([]byte("posthorn sink: a huge body, on demand\n"), 1024)
	for length > 0 {
		n, err := w.Write(chunk[:min(int64(len(chunk)), length)])
		if err != nil {
			return
		}
		length -= int64(n)
	}
}

// reset sends head and resets the connection.
func reset(w http.ResponseWriter, head string) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // HTTP/2: resets the stream
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(head)); err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes the close a reset
	}
}
