package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestDeliversToEachHandlerSeparately(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var good, bad recorder
	bad.answer = func(Delivery) error { return Permanent(errors.New("no such thing")) }
	d := b.dispatcher(t, Config{}, handler("good", "thing-*", &good), handler("bad", "*", &bad))
	for i := range 50 {
		b.stage(t, event(i))
	}
	eventually(t, "all settled", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Pending == 0 && l.Total.Processing == 0 && good.count() == 50 && bad.count() == 50
	})
	for _, r := range b.rows(t) {
		want := map[string]string{"good": "dispatched", "bad": "dead-letter"}[r.Handler]
		if r.State != want || r.Attempt != 1 {
			t.Errorf("delivery %+v, want %s after one attempt", r, want)
		}
	}
	backlog, err := d.Backlog(t.Context())
	if err != nil || backlog.Total.Failed != 50 || backlog.Total.Dispatched != 50 {
		t.Errorf("backlog %+v, %v", backlog.Total, err)
	}
}

func TestRetriesUntilDelivered(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	r.answer = func(d Delivery) error {
		if d.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	}
	b.dispatcher(t, Config{Retry: RetryPolicy{First: time.Millisecond}}, handler("h", "*", &r))
	staged := b.stage(t, event(1))
	eventually(t, "dispatched", func() bool { return b.rows(t)[0].State == "dispatched" })
	row := b.rows(t)[0]
	if row.Attempt != 3 || row.Charged != 3 || !row.LastError.Valid || !row.Completed.Valid {
		t.Errorf("row %+v", row)
	}
	last := Fence(0)
	for _, d := range r.received {
		if d.Message.ID != staged[0].ID || string(d.Message.Payload) != string(staged[0].Payload) {
			t.Errorf("attempt %d carried another message: %+v", d.Attempt, d.Message)
		}
		if d.Fence <= last {
			t.Errorf("fence %d after %d", d.Fence, last)
		}
		last = d.Fence
	}
}

func TestInTxTakesEffectOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	b.do(t, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE effects (message TEXT)`)
		return err
	})
	d := b.dispatcher(t, Config{Retry: RetryPolicy{First: time.Millisecond}}, Handler{
		Name: "count", Routes: []Route{{Pattern: "*"}},
		InTx: func(ctx context.Context, tx *Tx, d Delivery) error {
			if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, string(d.Message.ID)); err != nil {
				return err
			}
			if d.Attempt == 1 {
				return fmt.Errorf("the first attempt fails after its change")
			}
			return nil
		},
	})
	for i := range 20 {
		b.stage(t, event(i))
	}
	eventually(t, "all dispatched", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 20
	})
	var effects, messages int
	if err := b.read.DB.QueryRow(`SELECT count(*), count(DISTINCT message) FROM effects`).Scan(&effects, &messages); err != nil {
		t.Fatal(err)
	}
	if effects != 20 || messages != 20 {
		t.Errorf("%d effects of %d messages, want 20 of 20", effects, messages)
	}
}

func TestOrderingKeyIsKeptAcrossRetries(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	r.answer = func(d Delivery) error {
		if d.Attempt == 1 && d.Message.Seq%3 == 0 {
			return errors.New("later")
		}
		return nil
	}
	d := b.dispatcher(t, Config{Retry: RetryPolicy{First: time.Millisecond}}, handler("h", "*", &r))
	for i := range 60 {
		m := event(i)
		m.OrderingKey = fmt.Sprintf("key-%d", i%4)
		b.stage(t, m)
	}
	eventually(t, "all dispatched", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 60
	})
	last := map[string]int64{}
	for _, d := range r.received {
		if d.Message.Seq < last[d.Message.OrderingKey] {
			t.Errorf("%s: message %d after %d", d.Message.OrderingKey, d.Message.Seq, last[d.Message.OrderingKey])
		}
		last[d.Message.OrderingKey] = d.Message.Seq
	}
}

// TestStopAfterAStartThatFailed: a program that is told to stop while it starts must come to its end in good order.
func TestStopAfterAStartThatFailed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	d, err := NewDispatcher(Config{Writer: b.writer, Read: b.read})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start with a context that has ended: %v", err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Errorf("a second Start: %v", err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}
