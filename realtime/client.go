package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Client listens to an [Endpoint], and stays connected for as long as that makes sense.
type Client struct {
	// URL is the endpoint's, such as http://127.0.0.1:7678/v1/events. Required.
	URL string
	// HTTP sends the requests; a transport that dials a unix socket is fine. It should have no Timeout, which would cut the
	// stream. Defaults to http.DefaultClient.
	HTTP *http.Client
	// Header is sent with each request, such as Authorization.
	Header http.Header
	// Refresh is called after a 401 or 403 for a Header to try once more with; its error
	// is final. Defaults to nil: such an answer is final.
	Refresh func(context.Context) (http.Header, error)

	// OnGap is called, in order with the notifications, whenever what the caller holds may be out of date: when the first
	// connection stands, after each reconnection, and when notifications were lost. The caller then asks the queries that own
	// the truth again. Defaults to doing nothing, which is right only for a caller that holds nothing.
	OnGap func(Gap)
	// OnDown is called each time the connection is lost or cannot be made, with the cause and the wait before the next try, so
	// that a screen can say since when it is stale. Defaults to doing nothing.
	OnDown func(cause error, wait time.Duration)

	// MinBackoff and MaxBackoff bound the wait before a try: it is drawn between nothing and a bound that doubles with each
	// failure. What the server asks for by retry or Retry-After is waited at least. Default to 0.5 s and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// Heartbeat is what the server is taken to send until its hello says otherwise. A connection that is silent for twice as
	// long is given up. Defaults to 15 s.
	Heartbeat time.Duration
	// MaxEventBytes bounds one event. A larger one is skipped, and reported as a gap. Defaults to 64 KiB.
	MaxEventBytes int
	// Logger receives what went wrong with single events. Defaults to discarding everything.
	Logger *slog.Logger
}

// Gap says why what a caller holds may be out of date.
type Gap string

const (
	// GapStart: the first connection stands. What is read from now on is covered by notifications.
	GapStart Gap = "start"
	// GapResumed: the connection was lost and stands again, and the server's history answered for the time between: what changed
	// follows as notifications.
	GapResumed Gap = "resumed"
	// GapLost: notifications were lost.
	GapLost Gap = "lost"
)

// ErrStatus is wrapped by errors about an answer of the server; use errors.As with a *StatusError for more.
var ErrStatus = errors.New("unexpected answer")

// StatusError is an answer of the server that is not an event stream.
type StatusError struct {
	Status int
	// Code, Title and Detail are of the problem in the answer, where there was one.
	Code, Title, Detail string
	// RetryAfter is what the server asked to wait.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%v: %d %s", ErrStatus, e.Status, http.StatusText(e.Status))
	if e.Title != "" {
		text += ": " + e.Title
	}
	if e.Detail != "" {
		text += ". " + e.Detail
	}
	return text
}

// Unwrap makes errors.Is(err, ErrStatus) true.
func (e *StatusError) Unwrap() error { return ErrStatus }

// ByeError is an end of the stream that the server announced; OnDown is called with it.
type ByeError struct {
	// Reason is one of the constants of this package, or the server's own.
	Reason string
}

func (e *ByeError) Error() string { return "server ended the stream: " + e.Reason }

// planned: the end says nothing about this client, and another connection will do.
func (e *ByeError) planned() bool { return e.Reason == ReasonDrain || e.Reason == ReasonLifeSpan }

// Watch calls handle for each notification of the topics until ctx ends. Calls of handle, OnGap and OnDown are made one at a
// time, in order; while one lasts, the server keeps no more than the newest notification of each topic. A notification whose
// version is not newer than one already seen of its topic is dropped.
//
// Watch reconnects for ever after network errors, faults of the server and ends that the server announced: whether access that
// was taken away can be had again is what the next answer says. It returns
//   - the cause of ctx, when that ends;
//   - nil, when the server answers 204: there is nothing to listen to any more;
//   - a *StatusError for 401 and 403, after Refresh has had its chance;
//   - a *StatusError for another answer that repeating cannot help, unless a connection has stood before: then the fault is
//     taken to be a passing one, of a proxy or a deployment.
func (c *Client) Watch(ctx context.Context, topics []Topic, handle func(Notification)) error {
	if len(topics) == 0 {
		return fmt.Errorf("watch topics: %w: none given", ErrTopic)
	}
	for _, t := range topics {
		if err := t.check(); err != nil {
			return fmt.Errorf("watch topics: %w", err)
		}
	}
	w, err := newWatch(c.filled(), slices.Clone(topics), handle)
	if err != nil {
		return fmt.Errorf("watch topics: %w", err)
	}
	if err := w.run(ctx); err != nil {
		return fmt.Errorf("watch topics: %w", err)
	}
	return nil
}

func (c *Client) filled() Client {
	f := *c
	if f.HTTP == nil {
		f.HTTP = http.DefaultClient
	}
	if f.OnGap == nil {
		f.OnGap = func(Gap) {}
	}
	if f.OnDown == nil {
		f.OnDown = func(error, time.Duration) {}
	}
	if f.MinBackoff <= 0 {
		f.MinBackoff = 500 * time.Millisecond
	}
	if f.MaxBackoff <= 0 {
		f.MaxBackoff = max(30*time.Second, f.MinBackoff)
	}
	if f.Heartbeat <= 0 {
		f.Heartbeat = 15 * time.Second
	}
	if f.MaxEventBytes <= 0 {
		f.MaxEventBytes = 64 << 10
	}
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	return f
}
