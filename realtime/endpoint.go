package realtime

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Endpoint is the HTTP face of a [Hub]: GET with one topic parameter or more opens a stream of server-sent events. Register it
// for its path without a method, so that others are answered here too.
//
// The events are hello (epoch, heartbeat, life span, whether the history made up for a gap), notification, reset (what the client
// missed cannot be said: it refreshes) and bye (the reason for which the server ends the stream: a planned end, or access that is
// over; a client that comes back is told by the status whether it is). The id of an event is a cursor to resume from,
// sent back by clients as Last-Event-ID; one that is unknown is answered by a reset, never by an error, since a browser's
// EventSource takes an error as final.
type Endpoint struct {
	// Hub is required.
	Hub *Hub
	// Authorize authenticates the request and authorizes every one of its topics: each by itself, for the user, the tenant and
	// the resource. It returns ErrUnauthenticated or ErrForbidden, or wraps one. Required: without it nobody is let in.
	Authorize func(*http.Request, []Topic) (Principal, error)
}

// ServeHTTP serves one connection until it ends. The context of the request has to end when ServeHTTP has returned, as that of
// net/http does.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		problemMethod.write(w)
		return
	}
	topics, refusal := e.read(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	// Clears what the server's own time-outs have armed, and finds out whether deadlines reach the connection at all: without
	// them a client that hangs could not be got rid of.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		e.Hub.cfg.Logger.Error("serve live updates", "error", fmt.Errorf("set write deadline: %w", err))
		problemUnsupported.write(w)
		return
	}
	c, l, err := e.admit(w, r, topics)
	if err != nil {
		e.refuse(w, r, err)
		return
	}
	limitSendBuffer(r.Context(), e.Hub.cfg.SendBuffer)
	e.Hub.serve(r.Context(), c, l)
}

// admit authorizes, again where something was revoked between that and becoming one of the hub's connections.
func (e *Endpoint) admit(w http.ResponseWriter, r *http.Request, topics []Topic) (c *conn, l *line, err error) {
	const tries = 4
	for range tries {
		revoked := e.Hub.revocations()
		var p Principal
		if p, err = e.authorize(r, topics); err != nil {
			return nil, nil, err
		}
		l = e.Hub.guard.line(w, r)
		s := Subscriber{Principal: p, ID: l.id(), Topics: topics, Remote: r.RemoteAddr, Since: time.Now()}
		if c, err = e.Hub.admit(revoked, s, l, r.Header.Get("Last-Event-ID")); err == nil {
			return c, l, nil
		}
		if !errors.Is(err, errRevoked) {
			break
		}
	}
	return nil, nil, err
}

func (e *Endpoint) authorize(r *http.Request, topics []Topic) (Principal, error) {
	if e.Authorize == nil {
		return Principal{}, ErrUnauthenticated
	}
	p, err := e.Authorize(r, slices.Clone(topics))
	if err != nil {
		return Principal{}, err
	}
	if p.User == "" || !p.Expires.IsZero() && !time.Now().Before(p.Expires) {
		return Principal{}, ErrUnauthenticated
	}
	return p, nil
}

// read takes the topics from a request that is otherwise as it should be.
func (e *Endpoint) read(r *http.Request) ([]Topic, *problem) {
	cfg := &e.Hub.cfg
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if size > cfg.MaxRequestBytes {
		return nil, &problemTooLarge
	}
	if r.ContentLength != 0 {
		return nil, &problemBody
	}
	if !accepts(r) {
		return nil, &problemAccept
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &problemQuery
	}
	var topics []Topic
	for name, values := range query {
		if name != "topic" {
			return nil, &problemParameter
		}
		for _, v := range values {
			t, err := ParseTopic(v)
			switch {
			case errors.Is(err, ErrTopicTooLong):
				return nil, &problemTopicLong
			case err != nil:
				return nil, &problemTopic
			}
			topics = append(topics, t)
		}
	}
	slices.Sort(topics)
	topics = slices.Compact(topics)
	switch {
	case len(topics) == 0:
		return nil, &problemNoTopic
	case len(topics) > cfg.MaxTopics:
		return nil, &problemTopics
	}
	return slices.Clip(topics), nil
}

func accepts(r *http.Request) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "text/event-stream", "text/*", "*/*":
			return true
		}
	}
	return false
}

func (e *Endpoint) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		w.Header().Set("WWW-Authenticate", "Bearer")
		problemUnauthenticated.write(w)
	case errors.Is(err, ErrForbidden):
		problemForbidden.write(w)
	case errors.Is(err, errHostFull):
		later(w, r, problemFull)
	case errors.Is(err, errUserFull):
		later(w, r, problemUserFull)
	case errors.Is(err, errAddressFull):
		later(w, r, problemAddressFull)
	case errors.Is(err, errDraining):
		later(w, r, problemDraining)
	default:
		if r.Context().Err() == nil && !errors.Is(err, errRevoked) {
			e.Hub.cfg.Logger.Error("authorize live updates", "error", err)
		}
		later(w, r, problemAuthorization)
	}
}

// later tells a client to come back. A browser's EventSource would take any error status as final, so it gets an empty stream
// with the time to wait. Waiting times are spread, or those refused together would come back together.
func later(w http.ResponseWriter, r *http.Request, p problem) {
	wait := spread(10*time.Second, 0.5)
	if !fromBrowser(r) {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds()+1)))
		p.write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "retry: "+strconv.FormatInt(wait.Milliseconds(), 10)+
		"\nevent: bye\ndata: {\"reason\":\""+p.Code+"\"}\n\n")
}

func fromBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream") &&
		(r.Header.Get("Sec-Fetch-Mode") != "" || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Sec-Fetch-Dest") != "")
}
