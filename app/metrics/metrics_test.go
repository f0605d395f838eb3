package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/metrics"
	"github.com/posthorn/posthorn/outbox"
)

// source is a dispatcher and a writer with what a test says.
type source struct {
	backlog outbox.Backlog
	failing error
	down    error
}

func (s *source) Backlog(context.Context) (outbox.Backlog, error) { return s.backlog, s.failing }
func (s *source) Down() error                                     { return s.down }
func (s *source) Waiting() int                                    { return 7 }
func (s *source) Err() error                                      { return nil }

func published(t *testing.T, s *source) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	if err := m.Publish(metrics.Config{Dispatcher: s, Writer: s, Usage: func() (int64, int64) { return 1000, 4000 },
		Alerts: func(each func(alert, handler string)) {
			each("alert-dead-letters", "shop")
			each("alert-store-outage", "")
		}}); err != nil {
		t.Fatal(err)
	}
	return m
}

func scrape(t *testing.T, m *metrics.Metrics, by *access.Principal) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	if by != nil {
		r = r.WithContext(access.With(r.Context(), *by))
	}
	w := httptest.NewRecorder()
	m.Handler(api.Refuse).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

var viewer = access.Principal{Actor: "token:eye", Tenant: outbox.MainTenant, Role: access.Viewer, TokenID: "tok_1"}

func holds(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "outbox") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func TestIndicatorsArePublished(t *testing.T) {
	t.Parallel()
	half := 0.5
	s := &source{backlog: outbox.Backlog{Lanes: []outbox.LaneBacklog{
		{Handler: "shop", Indicators: outbox.Indicators{Pending: 5, Processing: 2, Failed: 1, OldestPending: 90 * time.Second, Attempts: 12, Dispatched: 8, Stale: 1, Success5m: &half}},
		{Handler: "mail", Hold: "paused", Indicators: outbox.Indicators{Pending: 3, Held: 3}},
	}}}
	m := published(t, s)
	m.Observe(outbox.Outcome{Handler: "shop", Result: outbox.ResultDelivered, Class: outbox.Delivered, Duration: 30 * time.Millisecond})
	m.Observe(outbox.Outcome{Handler: "shop", Result: outbox.ResultRetry, Class: outbox.Failed, Duration: 2 * time.Second})
	m.Observe(outbox.Outcome{Handler: "shop", Result: outbox.ResultDeadLetter, Class: outbox.Corrupt})
	code, text := scrape(t, m, &viewer)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	holds(t, text,
		`posthorn_alerts{alert="alert-dead-letters",handler="shop"} 1`, `posthorn_alerts{alert="alert-store-outage",handler=""} 1`,
		`outbox_store_up 1`, `outbox_writer_waiting 7`, `outbox_store_used_bytes 1000`, `outbox_store_budget_bytes 4000`,
		`outbox_pending{handler="shop",held="false"} 5`, `outbox_pending{handler="shop",held="true"} 0`,
		`outbox_pending{handler="mail",held="false"} 0`, `outbox_pending{handler="mail",held="true"} 3`,
		`outbox_processing{handler="shop"} 2`, `outbox_failed{handler="shop"} 1`, `outbox_oldest_pending_age_seconds{handler="shop"} 90`,
		`outbox_attempts_total{handler="shop"} 12`, `outbox_dispatched_total{handler="shop"} 8`, `outbox_stale_total{handler="shop"} 1`,
		`outbox_success_ratio{handler="shop",window="5m"} 0.5`,
		`outbox_outcomes_total{class="delivered",handler="shop",result="delivered"} 1`,
		`outbox_outcomes_total{class="failed",handler="shop",result="retry"} 1`,
		`outbox_outcomes_total{class="corrupt",handler="shop",result="dead-letter"} 1`,
		`outbox_dispatch_duration_seconds_bucket{handler="shop",result="delivered",le="0.05"} 1`,
		`outbox_dispatch_duration_seconds_count{handler="shop",result="retry"} 1`,
	)
	if strings.Contains(text, `window="1h"`) {
		t.Error("a ratio of nothing is published")
	}
}

// An outage of the store shows as the gauge, and the counters of messages stand as they were.
func TestStoreOutageIsAGauge(t *testing.T) {
	t.Parallel()
	s := &source{}
	m := published(t, s)
	m.Observe(outbox.Outcome{Handler: "shop", Result: outbox.ResultDelivered, Class: outbox.Delivered, Duration: time.Millisecond})
	s.down, s.failing = errors.New("database is locked"), errors.New("database is locked")
	code, text := scrape(t, m, &viewer)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	holds(t, text, `outbox_store_up 0`, `outbox_outcomes_total{class="delivered",handler="shop",result="delivered"} 1`)
}

func TestMetricsAskForAViewerOfTheMainTenant(t *testing.T) {
	t.Parallel()
	m := published(t, &source{})
	far := viewer
	far.Tenant = "far"
	for _, c := range []struct {
		name string
		by   *access.Principal
		want int
	}{{"nobody", nil, 401}, {"another tenant", &far, 403}, {"a viewer", &viewer, 200}} {
		code, text := scrape(t, m, c.by)
		if code != c.want {
			t.Errorf("%s: %d, want %d", c.name, code, c.want)
		}
		var problem api.Problem
		if err := json.Unmarshal([]byte(text), &problem); code != 200 && (err != nil || problem.Status != code || problem.Code == "") {
			t.Errorf("%s is answered by no problem: %s", c.name, text)
		}
	}
}
