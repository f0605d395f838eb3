package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/audit"
	"github.com/posthorn/posthorn/app/deliveries"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// settle gives deliveries a state as an attempt would have.
func (b *bed) settle(t *testing.T, query string, args ...any) {
	t.Helper()
	err := b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		if _, err := tx.Tx.Tx.ExecContext(ctx, `UPDATE posthorn_meta SET value = 9 WHERE name = 'fence'`); err != nil {
			return err
		}
		_, err := tx.Tx.Tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	makeDead = `UPDATE outbox_deliveries SET state = 'dead-letter', attempt = 3, charged = 3, fence = 9, next_attempt_at = NULL, blocked = NULL,
		completed_at = 1767225600000000, failure_class = 'rejected', last_error = 'answered 400 Bad Request' WHERE id = ?`
	makeDispatched = `UPDATE outbox_deliveries SET state = 'dispatched', attempt = 1, charged = 1, fence = 9, next_attempt_at = NULL, blocked = NULL,
		blocks = NULL, completed_at = 1767225600000000, suppressed = 0 WHERE id = ?`
)

// seedDeliveries makes a destination, and six deliveries to it: 1 and 2 of one ordering key.
func seedDeliveries(t *testing.T, b *bed) {
	t.Helper()
	if a := b.post(t, "/v1/destinations", `{"name":"shop","kind":"webhook","url":"http://127.0.0.1:1/","types":["*"]}`); a.status != 201 {
		t.Fatal(a.body)
	}
	for i := 1; i <= 6; i++ {
		key := ""
		if i <= 2 {
			key = `,"ordering_key":"k"`
		}
		if a := b.post(t, "/v1/messages", fmt.Sprintf(`{"type":"order-placed","id":"m-%d","payload":{"order":%d}%s}`, i, i, key)); a.status != 201 {
			t.Fatal(a.body)
		}
	}
}

func TestOperatorsChangeDeliveries(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	seedDeliveries(t, b)
	for id := 3; id <= 5; id++ {
		b.settle(t, makeDead, id)
	}
	b.settle(t, makeDead, 1)
	b.settle(t, makeDispatched, 6)
	const why = `{"reason":"the receiver was mended"}`
	for _, c := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"no reason", "/v1/deliveries/3/replay", `{}`, 422, "missing-field"},
		{"empty reason", "/v1/deliveries/3/replay", `{"reason":" "}`, 422, "bad-reason"},
		{"long reason", "/v1/deliveries/3/replay", `{"reason":"` + strings.Repeat("x", 501) + `"}`, 422, "bad-reason"},
		{"no number", "/v1/deliveries/x/replay", why, 422, "bad-id"},
		{"none", "/v1/deliveries/99/replay", why, 404, "no-delivery"},
		{"replay what is pending", "/v1/deliveries/2/replay", why, 409, "wrong-state"},
		{"cancel a dead letter", "/v1/deliveries/3/cancel", why, 409, "wrong-state"},
		{"skip what holds back nothing", "/v1/deliveries/3/skip", why, 409, "blocks-nothing"},
		{"resend what was not dispatched", "/v1/messages/m-3/resend", why, 409, "not-dispatched"},
		{"resend nothing", "/v1/messages/none/resend", why, 404, "no-message"},
		{"bulk without a reason", "/v1/replays", `{"filter":{"handler":"shop"}}`, 422, "bad-reason"},
		{"bulk for no handler", "/v1/replays", `{"filter":{"handler":"gone"},"dry_run":true}`, 409, "no-handler"},
		{"bulk of no class", "/v1/replays", `{"filter":{"class":"odd"},"dry_run":true}`, 422, "bad-filter"},
		{"bulk of no time", "/v1/replays", `{"filter":{"failed_from":"now"},"dry_run":true}`, 422, "bad-time"},
		{"bulk of no span", "/v1/replays", `{"filter":{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"},"dry_run":true}`, 422, "bad-filter"},
		{"bulk from nowhere", "/v1/replays", `{"dry_run":true,"cursor":"x"}`, 422, "bad-cursor"},
	} {
		a := b.post(t, c.path, c.body)
		if p := a.problem(t); a.status != c.status || p.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, p.Code, c.status, c.code)
		}
	}
	for _, c := range []struct{ path, body, want string }{
		{"/v1/deliveries/3/replay", why, `{"id":3,"message":"m-3","handler":"shop","state":"pending","failure_class":"rejected"}`},
		{"/v1/deliveries/3/cancel", why, `{"id":3,"message":"m-3","handler":"shop","state":"dead-letter","failure_class":"cancelled"}`},
		{"/v1/deliveries/1/skip", why, `{"id":1,"message":"m-1","handler":"shop","state":"dead-letter","failure_class":"skipped"}`},
		{"/v1/messages/m-6/resend", why, `{"message":"m-6","deliveries":[7]}`},
		{"/v1/replays", `{"filter":{"q":"bad request","class":"rejected"},"dry_run":true}`, `{"dry_run":true,"matched":2,"replayed":0,"handlers":[{"handler":"shop","class":"rejected","count":2}],"next":null}`},
		{"/v1/replays", `{"filter":{"q":"bad request","class":"rejected"},"reason":"all mended"}`, `{"dry_run":false,"matched":2,"replayed":2,"handlers":[{"handler":"shop","class":"rejected","count":2}],"next":null}`},
		{"/v1/replays", `{"filter":{"q":"bad request","class":"rejected"},"reason":"all mended"}`, `{"dry_run":false,"matched":0,"replayed":0,"handlers":[],"next":null}`},
	} {
		if a := b.post(t, c.path, c.body); a.status != 200 || strings.TrimSpace(a.body) != c.want {
			t.Errorf("%s: %d %s, want %s", c.path, a.status, a.body, c.want)
		}
	}
	// The same request again is answered like the first time.
	first := b.post(t, "/v1/messages/m-6/resend", `{"reason":"once"}`, "Idempotency-Key", "k-1")
	again := b.post(t, "/v1/messages/m-6/resend", `{"reason":"once"}`, "Idempotency-Key", "k-1")
	if first.status != 200 || first.body != again.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}

	var entries []audit.Entry
	path := "/v1/audit?limit=2"
	for {
		a := b.get(t, path)
		var page audit.Page
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || len(page.Entries) > 2 {
			t.Fatalf("%d %s: %v", a.status, a.body, err)
		}
		entries = append(entries, page.Entries...)
		if page.Next == nil {
			break
		}
		path = "/v1/audit?limit=2&cursor=" + *page.Next
	}
	counts := map[string]int{}
	for i, e := range entries {
		counts[e.Action]++
		if i > 0 && e.At.After(entries[i-1].At) {
			t.Errorf("entry %d is newer than the one before it", i)
		}
		if e.Action == audit.Replayed && (e.Failure != "rejected: answered 400 Bad Request" || e.Handler != "shop" || e.Actor != "token:the-admin" || e.Detail == "") {
			t.Errorf("a replay's entry: %+v", e)
		}
	}
	for action, want := range map[string]int{"delivery.replay": 3, "delivery.cancel": 1, "delivery.skip": 1, "message.resend": 2, "destination.create": 1} {
		if counts[action] != want {
			t.Errorf("%d entries of %s, want %d", counts[action], action, want)
		}
	}
	if a := b.get(t, "/v1/messages/m-3"); !strings.Contains(a.body, `"reason":"the receiver was mended"`) {
		t.Errorf("the message does not show its replay: %s", a.body)
	}
}

func TestWhoMayChangeDeliveries(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	seedDeliveries(t, b)
	b.settle(t, makeDead, 3)
	const why = `{"reason":"why not"}`
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/deliveries/3/replay", why}, {"POST", "/v1/deliveries/4/cancel", why}, {"POST", "/v1/deliveries/3/skip", why}, {"POST", "/v1/replays", why},
		{"POST", "/v1/messages/m-1/resend", why}, {"POST", "/v1/destinations/shop/backfill", `{}`}, {"GET", "/v1/audit", ""},
	} {
		if a := b.send(t, b.tokens[access.Viewer], c.method, c.path, c.body); a.status != 403 {
			t.Errorf("a viewer at %s: %d %s", c.path, a.status, a.body)
		}
		if a := b.send(t, "", c.method, c.path, c.body); a.status != 401 {
			t.Errorf("nobody at %s: %d %s", c.path, a.status, a.body)
		}
		far := b.send(t, b.far, c.method, c.path, c.body)
		switch c.path {
		case "/v1/replays":
			if far.status != 200 || !strings.Contains(far.body, `"matched":0`) {
				t.Errorf("another tenant's bulk replay: %d %s", far.status, far.body)
			}
		case "/v1/audit":
			if far.status != 200 || strings.Contains(far.body, "shop") {
				t.Errorf("another tenant's audit: %d %s", far.status, far.body)
			}
		default:
			if far.status != 404 {
				t.Errorf("another tenant at %s: %d %s", c.path, far.status, far.body)
			}
		}
	}
	if a := b.send(t, b.tokens[access.Operator], http.MethodPost, "/v1/deliveries/3/replay", why); a.status != 200 {
		t.Errorf("an operator: %d %s", a.status, a.body)
	}
}

func TestBulkReplayOfThousands(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	seedDeliveries(t, b)
	const n = 1201
	b.settle(t, `WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO outbox_messages(type, payload) SELECT 'order-placed', '{}' FROM i`, n)
	b.settle(t, strings.Replace(makeDead, "id = ?", "id > ?", 1), 6)
	a := b.post(t, "/v1/replays", `{"reason":"mended"}`)
	var done deliveries.Replayed
	if err := json.Unmarshal([]byte(a.body), &done); err != nil || done.Replayed != n || done.Next != nil {
		t.Errorf("%d %s: %v", a.status, a.body, err)
	}
}

func TestBackfillOfADestination(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	for i := range 3 {
		b.post(t, "/v1/messages", fmt.Sprintf(`{"type":"order-placed","payload":{"order":%d}}`, i))
	}
	seedDeliveries(t, b)
	if a := b.get(t, "/v1/destinations/shop/backfill"); a.status != 404 || a.problem(t).Code != "no-backfill" {
		t.Errorf("before: %d %s", a.status, a.body)
	}
	if a := b.post(t, "/v1/destinations/shop/backfill", `{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`); a.status != 422 {
		t.Errorf("a span that is none: %d %s", a.status, a.body)
	}
	if a := b.post(t, "/v1/destinations/shop/backfill", ""); a.status != 202 || !strings.Contains(a.body, `"state":"running"`) {
		t.Fatalf("begin: %d %s", a.status, a.body)
	}
	var now destinations.Backfill
	for range 1000 {
		a := b.get(t, "/v1/destinations/shop/backfill")
		if err := json.Unmarshal([]byte(a.body), &now); err != nil {
			t.Fatal(err)
		}
		if now.State == "finished" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if now.State != "finished" || now.Added != 3 || now.Progress != 1 || now.FinishedAt == nil {
		t.Errorf("after: %+v", now)
	}
	if a := b.get(t, "/v1/messages?handler=unrouted"); strings.Contains(a.body, `"order-placed"`) {
		t.Errorf("still unrouted: %s", a.body)
	}
	if a := b.get(t, "/v1/destinations/shop"); !strings.Contains(a.body, `"flowing"`) {
		t.Errorf("the destination is not freed: %s", a.body)
	}
}

// TestADiskThatIsNearlyFullStopsIntakeOnly leaves operators their work.
func TestADiskThatIsNearlyFullStopsIntakeOnly(t *testing.T) {
	t.Parallel()
	var low error
	b := newBed(t, func(d *api.Deps) { d.Intake = func() error { return low } })
	low = store.ErrDiskLow
	before := b.rows(t)
	for _, path := range []string{"/v1/messages", "/v1/transactions", "/v1/destinations/shop/backfill"} {
		if a := b.post(t, path, `{}`); a.status != 507 || a.problem(t).Code != "disk-low" {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	if after := b.rows(t); after != before {
		t.Errorf("rows changed from\n%sto\n%s", before, after)
	}
	if a := b.send(t, "", "GET", "/readyz", ""); a.status != 200 || !strings.Contains(a.body, `"status":"degraded"`) || !strings.Contains(a.body, `"code":"disk-low"`) {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	if a := b.post(t, "/v1/destinations", `{"name":"shop","kind":"webhook","url":"https://example.org","types":["*"]}`); a.status != 201 {
		t.Errorf("an operator's work: %d %s", a.status, a.body)
	}
	low = nil
	if a := b.post(t, "/v1/messages", `{"type":"order-placed","payload":{"order":1}}`); a.status != 201 {
		t.Errorf("with room again: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", "GET", "/readyz", ""); a.status != 200 || !strings.Contains(a.body, `"status":"ready"`) {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
}
