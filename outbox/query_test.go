package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// scatter stages n messages for three handlers and puts their deliveries into states at random.
func scatter(t *testing.T, b *bed, n int) []MessageRecord {
	t.Helper()
	var r recorder
	d, err := NewDispatcher(Config{Writer: b.writer, Read: b.read})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []Handler{handler("all", "*", &r), handler("things", "thing-*", &r), handler("orders", "order-*", &r)} {
		if err := d.Register(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	types := []string{"thing-done", "order-placed"}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var messages []Message
	for i := range n {
		messages = append(messages, Message{Type: types[rand.N(2)], Payload: []byte(`1`), OccurredAt: start.Add(time.Duration(i) * time.Minute), Tenant: []TenantID{"main", "other"}[rand.N(2)]})
	}
	staged := b.stage(t, messages...)
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for _, change := range []string{
			`UPDATE outbox_deliveries SET state = 'dispatched', next_attempt_at = NULL, blocked = NULL, suppressed = 0, completed_at = 5, fence = 1 WHERE abs(random()) % 2`,
			`UPDATE outbox_deliveries SET state = 'dead-letter', next_attempt_at = NULL, blocked = NULL, suppressed = NULL, completed_at = 6, fence = 2, failure_class = 'failed', last_error = 'Teapot ' || id WHERE abs(random()) % 5 = 0`,
			`UPDATE outbox_deliveries SET state = 'processing', next_attempt_at = NULL, blocked = NULL, lease_owner = 'boot', lease_expires_at = 7, fence = 3 WHERE state = 'pending' AND abs(random()) % 4 = 0`,
		} {
			if _, err := tx.Tx.Tx.ExecContext(ctx, change); err != nil {
				return err
			}
		}
		return nil
	})
	var records []MessageRecord
	for _, m := range staged {
		record, err := FindMessage(t.Context(), b.read.DB, m.Tenant, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		records = append([]MessageRecord{record}, records...)
	}
	return records
}

// matches is the model of a filter.
func (f Filter) matches(m MessageRecord) bool {
	prefix, wild := strings.CutSuffix(f.Type, "*")
	text := strings.ToLower(f.Text)
	found := f.Text == "" || strings.Contains(string(m.ID), text)
	reached := f.Handler == ""
	state := m.State()
	for _, d := range m.Deliveries {
		found = found || strings.Contains(strings.ToLower(d.LastError), text)
		if d.Handler == f.Handler {
			reached, state = true, d.State.Name()
		}
	}
	return m.Tenant == f.Tenant && found && reached && (f.State == "" || state == f.State) &&
		(f.Type == "" || m.Type == f.Type || wild && strings.HasPrefix(m.Type, prefix)) &&
		(f.From.IsZero() || !m.OccurredAt.Before(f.From)) && (f.To.IsZero() || m.OccurredAt.Before(f.To))
}

func pages(t *testing.T, b *bed, f Filter, limit, window int) (ids []MessageID, count int) {
	t.Helper()
	for after := Place(0); ; {
		page, err := listMessages(t.Context(), b.read.DB, f, after, limit, window)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			ids = append(ids, m.ID)
			if len(m.Deliveries) == 0 {
				t.Errorf("message %d is listed without its deliveries", m.Seq)
			}
		}
		count++
		if after = page.Next; after == 0 {
			return ids, count
		}
	}
}

func TestListsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done", "order-placed")
	records := scatter(t, b, 60)
	from, to := records[50].OccurredAt, records[10].OccurredAt
	for _, state := range []StateName{"", StatePending, StateProcessing, StateDispatched, StateDeadLetter} {
		for _, handler := range []HandlerName{"", "all", "nobody"} {
			for _, f := range []Filter{{}, {Type: "order-*"}, {Type: "thing-done", Text: "tEAPOT"}, {From: from, To: to}, {Text: string(records[3].ID)}, {Text: "%"}} {
				f.Tenant, f.State, f.Handler = "main", state, handler
				var want []MessageID
				for _, m := range records {
					if f.matches(m) {
						want = append(want, m.ID)
					}
				}
				if got, _ := pages(t, b, f, 7, 40); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%+v: listed %v, want %v", f, got, want)
				}
			}
		}
	}
}

func TestAPageLooksAtABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done", "order-placed")
	messages := make([]Message, 110)
	for i := range messages {
		messages[i] = Message{Type: "thing-done", Payload: []byte(`1`)}
	}
	messages[3].Type = "order-placed"
	b.stage(t, messages...)
	for _, f := range []Filter{{}, {State: StatePending}, {State: StatePending, Handler: Unrouted}} {
		f.Tenant, f.Type = MainTenant, "order-placed"
		if ids, count := pages(t, b, f, 7, 50); len(ids) != 1 || count != 3 {
			t.Errorf("%+v: %d messages over %d pages, want one over three", f, len(ids), count)
		}
	}
}

// TestListsAreNeverSorted holds the plan: a sort would read everything before the first row.
func TestListsAreNeverSorted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	rows, err := b.read.DB.Query("EXPLAIN QUERY PLAN "+walkMessageRows, Filter{Tenant: MainTenant}.args(sql.Named("after", 9), sql.Named("end", 1), sql.Named("limit", 5))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(step, "TEMP B-TREE") || strings.HasPrefix(step, "SCAN") || strings.Contains(step, "m USING INDEX") {
			t.Errorf("the plan has %q", step)
		}
	}
}

func TestAMessageIsReadWithAllThatHappenedToIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	m := b.stage(t, Message{Type: "thing-done", ContentType: "image/png", Payload: []byte{0, 255}, Headers: map[string]string{"correlation": "c"}, DeliverAt: time.Now().Add(time.Hour)})[0]
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for _, change := range []string{
			`INSERT INTO outbox_attempts(delivery, attempt, fence, charged, class, status, error, excerpt, started_at, duration) VALUES (1, 1, 4, 1, 'failed', 500, 'no', 'body', 8, 9), (1, 2, 5, 0, 'unreachable', NULL, 'gone', NULL, 10, 11)`,
			`INSERT INTO outbox_replays(delivery, message, tenant, handler, actor, reason, replayed_at, failure) VALUES (1, 'x', 'main', 'unrouted', 'os:me', 'mended', 12, 'failed: no')`,
		} {
			if _, err := tx.Tx.Tx.ExecContext(ctx, change); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := FindMessage(t.Context(), b.read.DB, MainTenant, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	d := got.Deliveries[0]
	if !got.Hashed || got.PayloadSHA256 != m.PayloadSHA256 || string(got.Payload) != string(m.Payload) || got.Headers["correlation"] != "c" || got.DeliverAt.IsZero() ||
		len(d.Attempts) != 2 || d.Attempts[0].Status != 500 || d.Attempts[1].Class != Unreachable || d.Attempts[1].Duration != 11*time.Microsecond ||
		len(d.Replays) != 1 || d.Replays[0].Actor != "os:me" {
		t.Errorf("read %+v", got)
	}
	content, payload, err := FindPayload(t.Context(), b.read.DB, MainTenant, m.ID)
	if content != "image/png" || string(payload) != "\x00\xff" || err != nil {
		t.Errorf("payload %q %x %v", content, payload, err)
	}
	if _, err := FindMessage(t.Context(), b.read.DB, "other", m.ID); !errors.Is(err, ErrNoMessage) {
		t.Errorf("another tenant reads it: %v", err)
	}
}
