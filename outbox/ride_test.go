package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// parked waits until the dispatcher's loop has nothing to do.
func parked(t *testing.T, b *bed) {
	t.Helper()
	eventually(t, "the dispatcher is idle", func() bool {
		b.writer.mu.Lock()
		defer b.writer.mu.Unlock()
		return b.writer.rider != nil
	})
}

// handDriven is a dispatcher without its loop, so that a test says when it rides.
func handDriven(t *testing.T, b *bed, handlers ...Handler) *Dispatcher {
	t.Helper()
	d, err := NewDispatcher(Config{Writer: b.writer, Read: b.read})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handlers {
		if err := d.Register(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.recover(t.Context(), handlers); err != nil {
		t.Fatal(err)
	}
	b.writer.OnCommit(d.behindCommit)
	d.takeTurns(t.Context())
	t.Cleanup(d.attempts.Wait)
	return d
}

// sendBoth has two commands share a group.
func sendBoth(t *testing.T, b *bed, first, second Command) (firstErr, secondErr error) {
	t.Helper()
	started := make(chan struct{})
	release := sync.OnceFunc(func() {
		for b.writer.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
	})
	begin := sync.OnceFunc(func() { close(started) })
	var both sync.WaitGroup
	both.Go(func() {
		firstErr = b.writer.First(context.Background(), func(ctx context.Context, tx *Tx) error {
			begin()
			release()
			return first(ctx, tx)
		})
	})
	<-started
	both.Go(func() { secondErr = b.writer.First(context.Background(), second) })
	both.Wait()
	return firstErr, secondErr
}

func stageOne(i int) Command {
	return func(ctx context.Context, tx *Tx) error {
		_, err := Stage(ctx, tx, event(i))
		return err
	}
}

// TestACommitClaimsWhatItStages: whoever is told that a message is committed finds it claimed, by the same commit.
func TestACommitClaimsWhatItStages(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	release := make(chan struct{})
	var r recorder
	r.answer = func(Delivery) error { <-release; return nil }
	d := b.dispatcher(t, Config{}, handler("h", "*", &r))
	for i := range 3 {
		parked(t, b)
		b.stage(t, event(i))
		if got := b.rows(t)[i]; got.State != "processing" || got.Attempt != 1 {
			t.Errorf("message %d after its commit: %+v", i, got)
		}
	}
	close(release)
	eventually(t, "settled", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 3 && l.Total.Pending == 0 && l.Total.Processing == 0
	})
	for _, got := range b.rows(t) {
		if got.State != "dispatched" || got.Attempt != 1 {
			t.Errorf("at the end: %+v", got)
		}
	}
}

// TestARideOfAnAbandonedGroup: a group that holds a ride is given up at its COMMIT. What the ride settles is settled once, what it claimed of a
// message that is refused is never sent, and what it claimed beside it is.
func TestARideOfAnAbandonedGroup(t *testing.T) {
	t.Parallel()
	b := tableBed(t)
	var r recorder
	h := handler("h", "*", &r)
	d := handDriven(t, b, h)
	ended := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.outcomes)
	}
	ride := d.hitch()
	b.stage(t, event(1))
	ride.end()
	eventually(t, "the first attempt has ended", func() bool { return ended() == 1 })

	ride = d.hitch()
	good, bad := sendBoth(t, b, stageOne(2), func(ctx context.Context, tx *Tx) error {
		if err := stageOne(3)(ctx, tx); err != nil {
			return err
		}
		return orphanRow(ctx, tx)
	})
	if good != nil || bad == nil {
		t.Fatalf("answered %v and %v", good, bad)
	}
	if d.turning.TryLock() {
		t.Fatal("a turn that is not ended lets another begin")
	}
	ride.end()
	eventually(t, "the second attempt has ended", func() bool { return ended() == 1 })
	d.takeTurns(t.Context())
	rows := b.rows(t)
	if len(rows) != 2 || rows[0].State != "dispatched" || rows[1].State != "dispatched" || rows[0].Attempt != 1 || rows[1].Attempt != 1 {
		t.Errorf("rows %+v", rows)
	}
	if r.count() != 2 {
		t.Errorf("%d attempts", r.count())
	}
	if l := d.tallies["h"]; l.pending != 0 || l.processing != 0 || l.dispatched != 2 {
		t.Errorf("counted %+v", l)
	}
}

// TestAFailingRideRefusesNobody: a turn that cannot claim is put back, whether it fails alone or takes the transaction with it.
func TestAFailingRideRefusesNobody(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"ABORT", "ROLLBACK"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := tableBed(t)
			b.do(t, func(ctx context.Context, tx *Tx) error {
				_, err := tx.Tx.Tx.ExecContext(ctx, fmt.Sprintf(`CREATE TRIGGER no_claims BEFORE UPDATE ON outbox_deliveries WHEN NEW.state = 'processing'
					BEGIN SELECT RAISE(%s, 'no claims'); END`, end))
				return err
			})
			var r recorder
			h := handler("h", "*", &r)
			d := handDriven(t, b, h)
			ride := d.hitch()
			b.stage(t, event(1))
			ride.end()
			if got := b.rows(t); len(got) != 1 || got[0].State != "pending" || got[0].Attempt != 0 || d.Down() == nil || r.count() != 0 {
				t.Errorf("rows %+v, down: %v, %d attempts", got, d.Down(), r.count())
			}
			b.do(t, func(ctx context.Context, tx *Tx) error {
				_, err := tx.Tx.Tx.ExecContext(ctx, `DROP TRIGGER no_claims`)
				return err
			})
			eventually(t, "delivered", func() bool { d.takeTurns(t.Context()); return r.count() == 1 && b.rows(t)[0].State == "dispatched" })
			if d.Down() != nil {
				t.Errorf("still down: %v", d.Down())
			}
		})
	}
}

// TestWhatATurnEndedIsNotLookedAtAgain: a commit that a turn came last in holds nothing that it has not seen, and any other may.
func TestWhatATurnEndedIsNotLookedAtAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	release := make(chan struct{})
	var r recorder
	r.answer = func(Delivery) error { <-release; return nil }
	d := handDriven(t, b, handler("h", "*", &r))
	defer close(release)
	ride := d.hitch()
	b.stage(t, event(1))
	ride.end()
	if got := d.plan(); got != nil || b.rows(t)[0].State != "processing" {
		t.Errorf("after a ride %+v is planned", got)
	}
	turn, err := d.takeTurn(t.Context())
	if turn != nil || err != nil {
		t.Errorf("a turn without anything to do: %+v, %v", turn, err)
	}
	d.Wake()
	turn = d.plan()
	first, second := sendBoth(t, b, turn.run(d), stageOne(2))
	d.end(turn, errors.Join(first, second))
	if first != nil || second != nil || b.rows(t)[1].State != "pending" {
		t.Fatalf("%v, %v, %+v", first, second, b.rows(t))
	}
	if d.takeTurns(t.Context()); b.rows(t)[1].State != "processing" {
		t.Error("what came behind a turn in its group was not looked for")
	}
}
