package records_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn/app/records"
)

const goodNotification = `---
title: A gauge
topic: gauges/{id}
query: GET /v1/gauges/{id}
freshness: {mode: immediate}
requirement: the keeper opens the sluice when the gauge passes the mark
update_latency: 2s
polling: every 2 s misses it in half of the cases
measured_cost: 9 MB an hour for a screen
expected_connections: 3
recovery: the client reconnects and reads the query again
decision: live
transport: server-sent-events
platform_support: any proxy that does not buffer
---
`

// TestNotificationsAreChecked: a record that leaves out what a decision for or against live updates stands on does not load (P38, P42), and
// neither does one that polls more slowly than its requirement allows.
func TestNotificationsAreChecked(t *testing.T) {
	t.Parallel()
	load := func(text string) error {
		_, err := records.Load(fstest.MapFS{"notifications/gauge.md": {Data: []byte(text)}})
		return err
	}
	if err := load(goodNotification); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for _, field := range []string{"topic", "query", "freshness", "requirement", "update_latency", "polling", "measured_cost", "expected_connections",
		"recovery", "decision", "transport", "platform_support"} {
		var kept []string
		for line := range strings.SplitSeq(goodNotification, "\n") {
			if !strings.HasPrefix(line, field+":") {
				kept = append(kept, line)
			}
		}
		if err := load(strings.Join(kept, "\n")); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("without %s: %v", field, err)
		}
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"another transport":    {"transport: server-sent-events", "transport: websockets", "transport"},
		"no such decision":     {"decision: live", "decision: because it looks good", "decision"},
		"polling, no interval": {"decision: live", "decision: polling", "poll_interval"},
		"polling too slowly":   {"decision: live", "decision: polling\npoll_interval: 3s", "poll_interval"},
		"live and polling":     {"decision: live", "decision: live\npoll_interval: 1s", "poll_interval"},
		"an authority of none": {"{mode: immediate}", "{mode: advisory}", "freshness"},
	} {
		if err := load(strings.Replace(goodNotification, c.from, c.to, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
