package ui

import (
	"testing"
	"time"
)

// TestRecordsAreLinked goes from an alert on the overview to its runbook, and from there to a record that its text names, by links alone.
func TestRecordsAreLinked(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.alerts = []map[string]any{{"alert": "alert-dead-letters", "title": "Alert: dead letters", "handler": "shop", "state": "raised", "value": 6, "threshold": 1, "unit": "count",
		"raised_at": time.Now().Add(-time.Minute), "use_cases": []string{"change-documents"}, "runbooks": []string{"recover-dead-letters"}}}
	tb := newBrowser(t).open(a, "/")
	tb.shows("What to do: recover dead letters")
	eval[any](tb, `document.querySelector('.alerts a[href="/records/runbooks/recover-dead-letters"]').click()`)
	tb.shows("the receiver understood and refused")
	eval[any](tb, `document.querySelector('article a[href="/records/settings/retry-cap"]').click()`)
	tb.shows("in place of 1h")
	tb.clean()
}

// TestAViewerSeesAMaskedPayload: the page shows what the API masked, and does not ask for the bytes.
func TestAViewerSeesAMaskedPayload(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.role = "viewer"
	m := newMessage("m-1", "order-placed", "dispatched", time.Now())
	m.view["payload"], m.view["masked"] = map[string]any{"order": "1001", "recipient": "[personal]"}, []string{"/recipient"}
	a.messages = append(a.messages, m)
	tb := newBrowser(t).open(a, "/messages/m-1")
	tb.shows("[personal]")
	tb.shows("masked for viewers")
	if n := a.count("GET /v1/messages/m-1/payload"); n != 0 {
		t.Errorf("the bytes were asked for %d times", n)
	}
	tb.clean()
}
