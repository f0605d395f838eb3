package realtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// script plays a server: each request is answered by the next step, the last step answers all that follow.
type script struct {
	steps []step

	mu       sync.Mutex
	requests []*http.Request
	times    []time.Time
}

type step struct {
	status int // 0: a network error
	header map[string]string
	body   string
	open   bool          // the stream stays open after body, silent
	hold   time.Duration // the stream stays open for this long, and ends cleanly
}

var errNetwork = errors.New("connection refused")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	at := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, r)
	s.times = append(s.times, time.Now())
	s.mu.Unlock()
	if at.status == 0 {
		return nil, errNetwork
	}
	h := http.Header{}
	if at.status == 200 {
		h.Set("Content-Type", "text/event-stream")
	}
	for k, v := range at.header {
		h.Set(k, v)
	}
	res := &http.Response{StatusCode: at.status, Header: h, Request: r, ProtoMajor: 1}
	if !at.open && at.hold == 0 {
		res.Body = io.NopCloser(strings.NewReader(at.body))
		return res, nil
	}
	pr, pw := io.Pipe()
	res.Body = pr
	go func() {
		_, _ = io.WriteString(pw, at.body)
		if at.open {
			<-r.Context().Done()
			pw.CloseWithError(r.Context().Err())
			return
		}
		select {
		case <-time.After(at.hold):
			pw.Close()
		case <-r.Context().Done():
			pw.CloseWithError(r.Context().Err())
		}
	}()
	return res, nil
}

func (s *script) waits() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ds []time.Duration
	for i := 1; i < len(s.times); i++ {
		ds = append(ds, s.times[i].Sub(s.times[i-1]))
	}
	return ds
}

// diary notes what a client tells its caller, in order.
type diary struct {
	entries []string
	downs   int
	client  *Client
}

func watching(s *script) *diary {
	d := &diary{client: &Client{URL: "http://posthorn.test/v1/events", HTTP: &http.Client{Transport: s}}}
	d.client.OnGap = func(g Gap) { d.entries = append(d.entries, string(g)) }
	d.client.OnDown = func(error, time.Duration) { d.downs++ }
	return d
}

func (d *diary) watch(ctx context.Context, topics ...Topic) error {
	if len(topics) == 0 {
		topics = []Topic{"a", "b"}
	}
	return d.client.Watch(ctx, topics, func(n Notification) {
		d.entries = append(d.entries, fmt.Sprintf("%s%d", n.Topic, n.Version))
	})
}

func (d *diary) want(t *testing.T, entries ...string) {
	t.Helper()
	if !slices.Equal(d.entries, entries) {
		t.Errorf("the caller was told %q, want %q", d.entries, entries)
	}
}

func helloEvent(epoch string, seq int, resumed bool) string {
	return fmt.Sprintf("id: %s-%d\nevent: hello\ndata: {\"epoch\":%q,\"heartbeat_ms\":15000,\"life_span_ms\":3600000,\"resumed\":%v}\n\n",
		epoch, seq, epoch, resumed)
}

func noteEvent(epoch string, seq int, topic string, version int) string {
	return fmt.Sprintf("id: %s-%d\nevent: notification\ndata: {\"topic\":%q,\"resource\":\"r\",\"version\":%d,\"change\":\"updated\","+
		"\"freshness\":{\"mode\":\"immediate\"}}\n\n", epoch, seq, topic, version)
}

var stop = step{status: 204}
