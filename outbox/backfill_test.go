package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func (b *bed) beginBackfill(t testing.TB, d *Dispatcher, name HandlerName, from, to time.Time) error {
	t.Helper()
	return b.writer.Do(context.Background(), func(ctx context.Context, tx *Tx) error {
		return d.BeginBackfill(ctx, tx, "os:mary", name, from, to)
	})
}

func TestBackfillGivesThePastInOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var first, second recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("first", "*", &first))
	const past, recent = 2*backfillMessages + 10, 30
	ordered := func(i int) Message {
		m := event(i)
		m.OrderingKey = fmt.Sprintf("k%d", i%30)
		return m
	}
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for i := range past {
			if _, err := Stage(ctx, tx, ordered(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := d.Register(t.Context(), handler("second", "thing-*", &second)); err != nil {
		t.Fatal(err)
	}
	if err := b.beginBackfill(t, d, "second", time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := b.beginBackfill(t, d, "second", time.Time{}, time.Time{}); !errors.Is(err, ErrBackfillRuns) {
		t.Errorf("a second backfill at once: %v", err)
	}
	// What is staged meanwhile comes in before the past does, and must be delivered after it.
	for i := range recent {
		b.stage(t, ordered(past+i))
	}
	if err := d.Resume(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if second.count() != 0 {
		t.Error("the lane flowed before its past was in")
	}
	if err := d.ContinueBackfill(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all delivered", func() bool { return second.count() == past+recent })
	last := map[string]int64{}
	for _, got := range second.received {
		if got.Message.Seq <= last[got.Message.OrderingKey] {
			t.Fatalf("%s: message %d after %d", got.Message.OrderingKey, got.Message.Seq, last[got.Message.OrderingKey])
		}
		last[got.Message.OrderingKey] = got.Message.Seq
	}
	done, err := FindBackfill(t.Context(), b.read.DB, "second")
	if err != nil || done.Added != past || done.FinishedAt.IsZero() || done.Actor != "os:mary" {
		t.Errorf("backfill %+v, %v", done, err)
	}
	// Again: there is nothing that the handler does not have.
	if err := b.beginBackfill(t, d, "second", time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := d.ContinueBackfill(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if done, err := FindBackfill(t.Context(), b.read.DB, "second"); err != nil || done.Added != 0 {
		t.Errorf("a repeated backfill gave %d, %v", done.Added, err)
	}
	eventually(t, "all settled", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Pending+l.Total.Processing == 0
	})
	b.tallied(t, d)
}

func TestBackfillTakesTheUnrouted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done", "other")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour})
	now := time.Now()
	for i, age := range []time.Duration{3 * time.Hour, 2 * time.Hour, time.Hour} {
		m := event(i)
		m.OccurredAt = now.Add(-age)
		b.stage(t, m)
	}
	b.stage(t, Message{Type: "other", Payload: []byte(`{}`)})
	eventually(t, "counted as unrouted", func() bool { l, err := d.Backlog(t.Context()); return err == nil && l.Total.Pending == 4 })
	if err := b.beginBackfill(t, d, "h", time.Time{}, time.Time{}); !errors.Is(err, ErrUnknownHandler) {
		t.Errorf("backfill of no handler: %v", err)
	}
	if err := d.Register(t.Context(), handler("h", "thing-*", &r)); err != nil {
		t.Fatal(err)
	}
	if err := b.beginBackfill(t, d, "h", now.Add(-150*time.Minute), now.Add(-30*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := d.ContinueBackfill(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "delivered", func() bool { l, err := d.Backlog(t.Context()); return err == nil && l.Total.Dispatched == 2 })
	var states []string
	for _, row := range b.rows(t) {
		states = append(states, row.Handler+" "+row.State)
	}
	if want := []string{"unrouted pending", "h dispatched", "h dispatched", "unrouted pending"}; !slices.Equal(states, want) {
		t.Errorf("deliveries %q, want %q", states, want)
	}
	b.tallied(t, d)
}

func TestBackfillGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour})
	b.stage(t, event(1))
	if err := d.Register(t.Context(), handler("h", "*", &r)); err != nil {
		t.Fatal(err)
	}
	if err := b.beginBackfill(t, d, "h", time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	d.crash()
	b.close()
	b = openBed(t, b.path)
	d = b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	open, err := OpenBackfills(t.Context(), b.read.DB)
	if err != nil || len(open) != 1 || open[0].Handler != "h" {
		t.Fatalf("open backfills %+v, %v", open, err)
	}
	if l, err := d.Backlog(t.Context()); err != nil || l.Lanes[0].Hold != BackfillHold {
		t.Errorf("the lane is not held after the restart: %+v, %v", l, err)
	}
	if err := d.ContinueBackfill(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "delivered", func() bool { return r.count() == 1 })
}
