package app

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/live"
	"github.com/posthorn/posthorn/app/need"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/realtime"
)

// TestTopicsHaveRecords: every topic that can be listened to has a notification record that decided for it, and there is no topic for what a
// record decided to poll (P38, P39); every live one travels over server-sent events (P40).
func TestTopicsHaveRecords(t *testing.T) {
	t.Parallel()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	var decided []realtime.Topic
	for _, n := range set.Notifications() {
		declared := slices.Contains(live.Topics(), realtime.Topic(n.Topic))
		if declared != (n.Decision == records.Live) {
			t.Errorf("notifications/%s decides for %s, but that %s is declared is %t", n.ID, n.Decision, n.Topic, declared)
		}
		decided = append(decided, realtime.Topic(n.Topic))
	}
	for _, topic := range live.Topics() {
		if !slices.Contains(decided, topic) {
			t.Errorf("no notification record is about the topic %s", topic)
		}
	}
}

// TestPolledViewsKeepToTheirRecords: the console polls at the interval of each record that decided so.
func TestPolledViewsKeepToTheirRecords(t *testing.T) {
	t.Parallel()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../ui/static/lib/pace.js")
	if err != nil {
		t.Fatal(err)
	}
	polled := map[string]time.Duration{}
	for _, found := range regexp.MustCompile(`(?m)^  (\w+): ([\d_]+),`).FindAllStringSubmatch(string(text), -1) {
		ms, err := strconv.Atoi(regexp.MustCompile(`_`).ReplaceAllString(found[2], ""))
		if err != nil {
			t.Fatal(err)
		}
		polled[found[1]] = time.Duration(ms) * time.Millisecond
	}
	for _, n := range set.Notifications() {
		if n.Decision != records.Polling {
			continue
		}
		every, ok := polled[n.ID]
		if n.ID == "loan" {
			continue // no view shows one by itself
		}
		if !ok || every != time.Duration(n.PollInterval) {
			t.Errorf("notifications/%s says every %s; the console polls every %s", n.ID, time.Duration(n.PollInterval), every)
		}
		delete(polled, n.ID)
	}
	if len(polled) > 0 {
		t.Errorf("the console polls what no record speaks of: %v", polled)
	}
}

// TestNeedIsMeasured: the measurement compares polling with the stream by what each shows late and costs, and its verdict follows the target
// and the budget.
func TestNeedIsMeasured(t *testing.T) {
	t.Parallel()
	config, err := parseConfig("posthorn.yaml", []byte("lending: true\nsettings:\n  live-connections-user: {value: 100, observation: \"a test is one user\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := records.NewIntegrationEvent(dir, "bench-done", "authoritative", []int{1}); err != nil {
		t.Fatal(err)
	}
	s := newStreamingWith(t, dir, config)
	_, token := s.token(access.NewToken{Role: access.Admin})
	ran := time.Duration(0)
	opt := need.Options{
		URL: s.url, Token: token, Intervals: []time.Duration{20 * time.Millisecond, 40 * time.Millisecond}, Length: 300 * time.Millisecond,
		Pause: 30 * time.Millisecond, Watchers: 2, Reads: 10, Budget: need.Budget{CPU: 1, Bytes: 1 << 40},
		CPU: func() (time.Duration, bool) { ran += time.Millisecond; return ran, true },
	}
	screens := []need.Screen{
		{Record: "message", Topic: "messages/{id}", Query: "/v1/messages/{id}", Target: time.Hour, Screens: 1, Live: true},
		{Record: "desk", Topic: "lending/desk", Query: "/v1/lending/desk", Target: time.Nanosecond, Screens: 1, Live: true},
	}
	results, err := need.Measure(t.Context(), screens, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if len(r.Polling) != 2 || r.Stream == nil || r.Stream.Seen == 0 || r.Stream.Bytes == 0 || r.Because == "" {
			t.Errorf("%s: %+v", r.Record, r)
			continue
		}
		for _, w := range r.Polling {
			if w.Seen == 0 || w.P99 < w.P50 || w.Bytes <= 0 || w.CPU <= 0 {
				t.Errorf("%s every %s: %+v", r.Record, w.Every, w)
			}
		}
		if twice, once := r.Polling[0].Bytes, r.Polling[1].Bytes; twice != 2*once {
			t.Errorf("%s: polling twice as often costs %d bytes, not twice %d", r.Record, twice, once)
		}
	}
	if results[0].Needed || !results[1].Needed {
		t.Errorf("a target that polling meets within the budget: needed %t; one that it cannot meet: needed %t", results[0].Needed, results[1].Needed)
	}
}
