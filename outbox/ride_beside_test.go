package outbox

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestARideWaitsForNobody: what takes turns may wait for the writer, so that the writer must not wait for it.
func TestARideWaitsForNobody(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := handDriven(t, b, handler("h", "*", &r))
	d.turning.Lock()
	ride := d.hitch()
	b.stage(t, event(1))
	ride.end()
	d.turning.Unlock()
	if got := b.rows(t)[0]; got.State != "pending" {
		t.Errorf("claimed beside another turn: %+v", got)
	}
	eventually(t, "delivered", func() bool { d.takeTurns(t.Context()); return b.rows(t)[0].State == "dispatched" })
}

// TestNoRideBesideAnOperator: what an operator's commit has changed is noted before the next turn, not after it.
func TestNoRideBesideAnOperator(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	r.answer = func(Delivery) error { return Permanent(errors.New("no")) }
	d := handDriven(t, b, handler("h", "*", &r))
	b.stage(t, event(1))
	eventually(t, "a dead letter", func() bool { d.takeTurns(t.Context()); return b.rows(t)[0].State == "dead-letter" })
	ride := d.hitch()
	b.do(t, func(ctx context.Context, tx *Tx) error {
		if _, err := d.Replay(ctx, tx, Operator{Tenant: MainTenant, Actor: "test", Reason: "once more"}, DeliveryID(b.rows(t)[0].ID)); err != nil {
			return err
		}
		return stageOne(2)(ctx, tx)
	})
	ride.end()
	for _, got := range b.rows(t) {
		if got.State != "pending" {
			t.Errorf("claimed by the operator's commit: %+v", got)
		}
	}
	eventually(t, "both given up", func() bool { d.takeTurns(t.Context()); return r.count() == 3 && d.tallies["h"].failed == 2 })
}

// TestStopWaitsForARide: what a ride has claimed when the dispatcher is stopped is started and settled.
func TestStopWaitsForARide(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{}, handler("h", "*", &r))
	parked(t, b)
	committed, release := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(committed); <-release })
	b.writer.OnCommit(hold)
	var both sync.WaitGroup
	both.Go(func() { b.stage(t, event(1)) })
	<-committed // and nobody is answered yet
	both.Go(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "it stops", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.stopping
	})
	close(release)
	both.Wait()
	if got := b.rows(t)[0]; got.State != "dispatched" || r.count() != 1 {
		t.Errorf("after Stop: %+v, %d attempts", got, r.count())
	}
	if b.writer.rider != nil {
		t.Error("somebody rides on")
	}
}

// TestRidesBesideEverythingElse is for the race detector: stagers, operators and the end of it all at once.
func TestRidesBesideEverythingElse(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	r.answer = func(d Delivery) error {
		if d.Attempt == 1 && d.Message.Seq%3 == 0 {
			return Permanent(errors.New("no"))
		}
		return nil
	}
	d := b.dispatcher(t, Config{}, handler("h", "*", &r), handler("other", "*", &r))
	by := Operator{Tenant: MainTenant, Actor: "test", Reason: "once more"}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := range 40 {
				b.stage(t, event(i))
				time.Sleep(time.Duration(i%4) * time.Millisecond)
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if err := errors.Join(d.Hold(t.Context(), "other", "for a while"), d.Resume(t.Context(), "other")); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	replay := func() {
		for _, row := range b.rows(t) {
			if row.State == "dead-letter" {
				_ = b.writer.Do(t.Context(), func(ctx context.Context, tx *Tx) error {
					_, err := d.Replay(ctx, tx, by, DeliveryID(row.ID))
					return err
				})
			}
		}
	}
	all.Go(func() {
		for range 10 {
			replay()
			time.Sleep(3 * time.Millisecond)
		}
	})
	all.Wait()
	eventually(t, "all delivered", func() bool {
		replay()
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 240 && l.Total.Pending+l.Total.Processing+l.Total.Failed == 0
	})
}
