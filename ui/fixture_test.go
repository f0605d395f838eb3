package ui

import (
	"fmt"
	"strconv"
	"time"
)

// fill gives the appliance a busy afternoon: three lanes, one of them in trouble, one held.
func (a *appliance) fill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.total = map[string]any{"pending": 1284, "held": 37, "processing": 11, "failed": 6, "oldest_pending_age_seconds": 754.2, "attempts": 48210,
		"dispatched": 48007, "duration_p50_seconds": 0.0418, "duration_p99_seconds": 1.92, "success_rate": 0.9871}
	a.lanes = []map[string]any{
		{"handler": "archive", "slots": 4, "busy": 1, "pending": 3, "failed": 0, "oldest_pending_age_seconds": 0.4, "attempts": 20110, "dispatched": 20110, "duration_p50_seconds": 0.0031, "duration_p99_seconds": 0.012, "success_rate": 1},
		{"handler": "billing", "hold": "paused by user:ana: month's end", "slots": 8, "busy": 0, "pending": 37, "held": 37, "held_bytes": 181970, "failed": 0, "oldest_pending_age_seconds": 754.2, "attempts": 8100, "dispatched": 8100, "duration_p50_seconds": 0.11, "duration_p99_seconds": 0.42},
		{"handler": "shop", "slots": 16, "busy": 10, "width": 16, "rate": 50, "pending": 1244, "failed": 6, "oldest_pending_age_seconds": 92.5, "attempts": 20000, "dispatched": 19797, "duration_p50_seconds": 0.0418, "duration_p99_seconds": 1.92, "success_rate": 0.9712},
	}
	hook := func(name, url, state, hold string, types ...string) map[string]any {
		d := map[string]any{"name": name, "kind": "webhook", "url": url, "types": types, "concurrency": 16, "timeout": "15s", "order": "block", "state": state,
			"created_at": now.Add(-72 * time.Hour), "created_by": "user:ana", "freshness": immediate}
		if hold != "" {
			d["hold"] = hold
		}
		return d
	}
	file := hook("archive", "", "flowing", "", "*")
	delete(file, "url")
	file["kind"], file["path"] = "file", "/var/lib/posthorn/archive.jsonl"
	a.destinations = []map[string]any{
		file,
		hook("billing", "https://billing.example/hooks/posthorn", "paused", "paused by user:ana: month's end", "order-*", "invoice-*"),
		hook("shop", "https://shop.example/api/v2/inbound/events", "flowing", "", "order-*"),
	}
	types := []string{"order-placed", "parcel-sent", "invoice-issued", "order-cancelled", "parcel-delivered"}
	states := []string{"processing", "pending", "dispatched", "dispatched", "dead-letter", "dispatched", "dispatched", "pending", "dispatched"}
	for i := range 130 {
		at := now.Add(-time.Duration(i*i) * 700 * time.Millisecond)
		a.messages = append(a.messages, newMessage(fmt.Sprintf("019ace8%05d-7c1e-7b2a-9d3f-aa81c05e%04d", i, i), types[i%5], states[i%9], at))
	}
	for i := range 70 {
		a.record("destination.pause", "billing", map[string]any{"detail": fmt.Sprintf("month's end, time %d", 70-i), "at": now.Add(-time.Duration(70-i) * time.Hour)})
	}
	a.record("message.resend", a.messages[3].view["id"].(string), map[string]any{"detail": "to shop: the receiver lost it", "at": now.Add(-20 * time.Minute)})
	a.record("delivery.replay", a.messages[4].view["id"].(string), map[string]any{"detail": "the receiver was mended", "handler": "shop", "delivery": 10,
		"failure": "failed: target answered 503 Service Unavailable", "at": now.Add(-12 * time.Minute)})
	a.documents["orders/1001"] = &fakeDocument{3, `{"customer":"C-204","total":12345678901234567890,"rate":1.10,"lines":[{"sku":"B-7","quantity":2,"price":"4.95"}],"paid":false,"note":null}`, now.Add(-5 * time.Minute)}
	a.documents["orders/1002"] = &fakeDocument{1, `{"customer":"C-11"}`, now.Add(-50 * time.Minute)}
	a.documents["orders/2026.11"] = &fakeDocument{12, `[]`, now.Add(-3 * time.Hour)}
}

// newMessage makes a message with two deliveries, the second in the given state.
func newMessage(id, kind, state string, at time.Time) *fakeMessage {
	first, _ := strconv.Atoi(id[max(0, len(id)-4):]) // deliveries have numbers of their own
	delivery := func(n int, handler, state string) map[string]any {
		d := map[string]any{"id": 2*first + n, "handler": handler, "state": state, "attempt": 1, "charged": 1, "fence": 48210 + n, "created_at": at,
			"next_attempt_at": nil, "blocked": nil, "held": nil, "resend_of": nil, "last_error": nil, "failure_class": nil, "suppressed": nil, "completed_at": nil}
		failed := func(attempt int, after time.Duration, class string, status any, charged bool, text string, excerpt any) map[string]any {
			return map[string]any{"attempt": attempt, "fence": 40000 + attempt, "charged": charged, "class": class, "status": status, "error": text, "excerpt": excerpt,
				"started_at": at.Add(after), "duration_seconds": 0.3184}
		}
		refused := failed(1, 40*time.Millisecond, "unreachable", nil, false, "connection refused", nil)
		wrong := failed(2, 5*time.Second, "failed", 503, true, "target answered 503 Service Unavailable", "{\"error\":\"the database is being moved\",\"retry\":true}")
		switch state {
		case "processing":
			d["lease_owner"], d["lease_expires_at"] = "token:till", time.Now().Add(12*time.Second)
		case "dispatched":
			d["completed_at"], d["suppressed"] = at.Add(61*time.Millisecond), false
		case "pending":
			d["attempt"], d["charged"], d["next_attempt_at"], d["blocked"] = 2, 1, time.Now().Add(42*time.Second), false
			d["held"] = false
			d["last_error"], d["failure_class"], d["attempts"] = "target answered 503 Service Unavailable", "failed", []any{refused, wrong}
		case "dead-letter":
			d["attempt"], d["completed_at"] = 3, at.Add(17*time.Second)
			d["last_error"], d["failure_class"] = "target answered 422 Unprocessable Entity", "rejected"
			d["attempts"] = []any{refused, wrong, failed(3, 16*time.Second, "rejected", 422, true, "target answered 422 Unprocessable Entity", "unknown sku B-7")}
		}
		return d
	}
	return &fakeMessage{state: state, view: map[string]any{
		"id": id, "kind": "integration-event", "type": kind, "schema_version": 1, "record": "integration-events/" + kind, "tenant": "main", "occurred_at": at,
		"deliver_at": nil, "ordering_key": "orders/1001", "content_type": "application/json", "state": state, "freshness": immediate,
		"headers":    map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "correlation": "checkout-88121"},
		"deliveries": []any{delivery(1, "archive", "dispatched"), delivery(2, "shop", state)},
	}}
}
