package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"
)

var (
	errSilent  = errors.New("server has been silent for two heartbeats")
	errEnded   = errors.New("stream ended")
	errRefresh = errors.New("credentials refreshed")
)

const (
	// steady is how long a connection has to stand before the backoff starts anew. One that falls at once was no success.
	steady = 5 * time.Second
	// longestWait bounds what a server may ask for.
	longestWait = time.Hour
)

// watch is one call of Client.Watch.
type watch struct {
	client Client
	url    string
	handle func(Notification)

	header    http.Header
	refreshed bool // since the last connection that stood

	backoff retry.Backoff
	least   time.Duration // what the server last asked to wait by retry
	once    time.Duration // what it asked for the next try only, by Retry-After
	cause   error         // why the last try ended

	stood  bool // a connection has stood
	told   bool // the hello of this connection was taken as a gap: the reset after it says nothing new
	epoch  string
	lastID string
	seen   map[Topic]int64
}

func newWatch(c Client, topics []Topic, handle func(Notification)) (*watch, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", err)
	}
	q := u.Query()
	seen := make(map[Topic]int64, len(topics))
	for _, t := range topics {
		q.Add("topic", string(t))
		seen[t] = 0
	}
	u.RawQuery = q.Encode()
	w := &watch{client: c, url: u.String(), handle: handle, header: c.Header, seen: seen}
	w.restart()
	return w, nil
}

func (w *watch) restart() {
	w.backoff = retry.WithFullJitter(retry.WithCappedDuration(w.client.MaxBackoff, retry.NewExponential(w.client.MinBackoff)))
}

func (w *watch) run(ctx context.Context) error {
	return retry.Do(ctx, retry.BackoffFunc(w.wait), func(ctx context.Context) error {
		w.once = 0
		w.cause = w.connect(ctx)
		switch {
		case w.cause == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case w.final(w.cause):
			return w.cause
		}
		return retry.RetryableError(w.cause)
	})
}

// wait is the time before the next try.
func (w *watch) wait() (time.Duration, bool) {
	if errors.Is(w.cause, errRefresh) {
		return 0, false
	}
	drawn, _ := w.backoff.Next() // it has no end
	d := max(drawn, min(max(w.least, w.once), longestWait))
	w.client.OnDown(w.cause, d)
	return d, false
}

// final reports whether trying again is in vain.
func (w *watch) final(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return false
	}
	switch s.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return s.Status < 500 && !w.stood
}

// connect makes one connection and reads it to its end. It returns nil only for an answer of 204.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := newWatchdog(2*w.client.Heartbeat, func() { cancel(errSilent) })
	defer dog.stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	for name, values := range w.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "identity") // what is compressed on the way is buffered on the way
	req.Header.Set("Cache-Control", "no-store")
	if w.lastID != "" {
		req.Header.Set("Last-Event-ID", w.lastID)
	}
	res, err := w.client.HTTP.Do(req)
	if err != nil {
		return explain(ctx, "connect", err)
	}
	defer res.Body.Close()
	dog.stop()
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != 200 || media != "text/event-stream" {
		return w.refused(ctx, res, dog)
	}
	return w.listen(ctx, res.Body, dog)
}

// explain puts the watchdog's cause in place of the cancelling that it made.
func explain(ctx context.Context, verb string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%s: %w", verb, err)
}

func (w *watch) refused(ctx context.Context, res *http.Response, dog *watchdog) error {
	s := &StatusError{Status: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"))}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		var p problem
		if json.NewDecoder(io.LimitReader(dog.guard(res.Body), 64<<10)).Decode(&p) == nil {
			s.Code, s.Title, s.Detail = p.Code, p.Title, p.Detail
		}
	} else if res.StatusCode == http.StatusOK {
		s.Title = "not an event stream"
	}
	w.once = s.RetryAfter
	denied := s.Status == http.StatusUnauthorized || s.Status == http.StatusForbidden
	if !denied || w.refreshed || w.client.Refresh == nil {
		return s
	}
	w.refreshed = true
	header, err := w.client.Refresh(ctx)
	if err != nil {
		return errors.Join(s, fmt.Errorf("refresh credentials: %w", err))
	}
	w.header = header
	return errRefresh
}

// retryAfter reads both forms of the header, or 0.
func retryAfter(value string) time.Duration {
	if s, err := strconv.ParseInt(value, 10, 32); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// listen reads the events of one connection. It always ends with an error: that of the connection, a *ByeError, or errEnded.
func (w *watch) listen(ctx context.Context, body io.Reader, dog *watchdog) error {
	began := time.Now()
	p := newParser(dog.guard(body), w.client.MaxEventBytes, w.lastID)
	for {
		e, err := p.next()
		w.lastID = p.lastID
		if p.retry > 0 {
			w.least = p.retry
		}
		switch {
		case errors.Is(err, errOversize):
			w.client.Logger.Warn("skip event", "error", err)
			w.client.OnGap(GapLost)
		case err == nil && e.name == "bye":
			bye := &ByeError{}
			_ = json.Unmarshal([]byte(e.data), bye)
			if w.stood && bye.planned() || time.Since(began) >= steady {
				w.restart()
			}
			return bye // nothing follows it, whatever a proxy does with the connection
		case err == nil:
			w.event(e, dog)
		default:
			if time.Since(began) >= steady {
				w.restart()
			}
			if errors.Is(err, io.EOF) && context.Cause(ctx) == nil {
				return errEnded
			}
			return explain(ctx, "read stream", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (w *watch) event(e streamEvent, dog *watchdog) {
	var err error
	switch e.name {
	case "hello":
		var h hello
		if err = json.Unmarshal([]byte(e.data), &h); err == nil {
			w.hello(h, dog)
		}
	case "notification":
		var n Notification
		if err = json.Unmarshal([]byte(e.data), &n); err == nil {
			w.notification(n)
		}
	case "reset":
		if !w.told {
			w.client.OnGap(GapLost)
		}
	}
	if err != nil {
		w.client.Logger.Warn("skip event", "event", e.name, "error", err)
		w.client.OnGap(GapLost)
	}
}

func (w *watch) hello(h hello, dog *watchdog) {
	if h.Heartbeat > 0 {
		dog.after = 2 * time.Duration(h.Heartbeat) * time.Millisecond
	}
	if h.Epoch != w.epoch {
		w.epoch = h.Epoch
		for t := range w.seen {
			w.seen[t] = 0
		}
	}
	first := !w.stood
	w.stood, w.refreshed, w.told = true, false, !h.Resumed
	switch {
	case first:
		w.client.OnGap(GapStart)
	case h.Resumed:
		w.client.OnGap(GapResumed)
	default:
		w.client.OnGap(GapLost)
	}
}

func (w *watch) notification(n Notification) {
	seen, asked := w.seen[n.Topic]
	if !asked || n.Version != 0 && n.Version <= seen {
		return
	}
	w.seen[n.Topic] = max(seen, n.Version)
	w.handle(n)
}
