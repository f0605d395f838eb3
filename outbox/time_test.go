package outbox

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// within a bubble a day passes at once; the database is opened inside, so that its goroutines belong to the bubble.

func TestRetriesBackOffAndEndAtTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var at []time.Time
		r := recorder{answer: func(Delivery) error { at = append(at, time.Now()); return errors.New("no") }}
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
		b.stage(t, event(1))
		time.Sleep(2 * 24 * time.Hour)
		synctest.Wait()
		if len(at) != 12 {
			t.Fatalf("%d attempts, want 12", len(at))
		}
		want := 5 * time.Second
		for i := range at[1:] {
			gap := at[i+1].Sub(at[i])
			if gap < want*8/10 || gap > want*12/10+time.Second {
				t.Errorf("attempt %d came after %s, want %s within 20 %%", i+2, gap, want)
			}
			want = min(2*want, time.Hour)
		}
		row := b.rows(t)[0]
		if row.State != "dead-letter" || row.Class.String != "failed" || row.Charged != 12 || row.LastError.String != "no" || !row.Completed.Valid {
			t.Errorf("row %+v", row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestUnreachableIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		back := time.Now().Add(12 * time.Hour)
		r := recorder{answer: func(Delivery) error {
			if time.Now().Before(back) {
				return &Failure{Class: Unreachable, Err: errors.New("connection refused")}
			}
			return nil
		}}
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
		b.stage(t, event(1))
		time.Sleep(13 * time.Hour)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "dispatched" || row.Charged != 1 {
			t.Errorf("after hours without a line: %+v", row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestScheduledMessageWaitsForItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var r recorder
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
		m := event(1)
		m.DeliverAt = time.Now().Add(36 * time.Hour)
		b.stage(t, m)
		time.Sleep(36*time.Hour - time.Second)
		synctest.Wait()
		if r.count() != 0 {
			t.Error("delivered before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.count() != 1 {
			t.Errorf("%d attempts once it was due", r.count())
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestExpiredLeaseReturnsAndTheLateSettleChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var calls atomic.Int32
		d := b.dispatcher(t, Config{Poll: time.Hour}, Handler{
			Name: "h", Routes: []Route{{Pattern: "*"}}, RepeatKey: "message id", Concurrency: 2,
			Outside: func(context.Context, Delivery) error {
				if calls.Add(1) == 1 {
					time.Sleep(time.Hour) // ignores its context
					return errors.New("far too late")
				}
				return nil
			},
		})
		b.stage(t, event(1))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if s := b.rows(t)[0].State; s != "processing" {
			t.Fatalf("%s before the lease ran out", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "dispatched" || row.Attempt != 2 || row.Charged != 2 {
			t.Fatalf("after the lease ran out: %+v", row)
		}
		if l, _ := d.Backlog(t.Context()); l.Lanes[0].Busy != 1 {
			t.Errorf("%d slots in use while the first handler still runs", l.Lanes[0].Busy)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		l, _ := d.Backlog(t.Context())
		if row := b.rows(t)[0]; row.State != "dispatched" || l.Total.Stale != 1 || l.Lanes[0].Busy != 0 {
			t.Errorf("after the late answer: %+v, %+v", row, l.Lanes[0])
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestStopDrainsThenReleasesWithoutCharge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		d := b.dispatcher(t, Config{Poll: time.Hour}, Handler{
			Name: "h", Routes: []Route{{Pattern: "*"}}, RepeatKey: "message id", Timeout: time.Hour,
			Outside: func(ctx context.Context, d Delivery) error {
				if d.Message.Seq == 1 {
					time.Sleep(10 * time.Second)
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			},
		})
		b.stage(t, event(1), event(2))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		rows := b.rows(t)
		if rows[0].State != "dispatched" {
			t.Errorf("the attempt that could finish: %+v", rows[0])
		}
		if rows[1].State != "pending" || rows[1].Attempt != 1 || rows[1].Charged != 0 {
			t.Errorf("the attempt that was cut short: %+v", rows[1])
		}
		b.close()
	})
}

func TestHeldLaneKeepsItsDeliveriesAndAnotherFlows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var held, free recorder
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("held", "*", &held), handler("free", "*", &free))
		if err := d.Hold(t.Context(), "held", "paused by a test"); err != nil {
			t.Fatal(err)
		}
		b.stage(t, event(1), event(2))
		time.Sleep(time.Hour)
		synctest.Wait()
		l, _ := d.Backlog(t.Context())
		if held.count() != 0 || free.count() != 2 || l.Total.Held != 2 || l.Total.OldestPending < time.Hour {
			t.Errorf("held %d, free %d, %+v", held.count(), free.count(), l.Total)
		}
		// The hold outlives the process.
		_ = d.Stop(t.Context())
		d = b.dispatcher(t, Config{Poll: time.Hour}, handler("held", "*", &held), handler("free", "*", &free))
		time.Sleep(time.Hour)
		synctest.Wait()
		if held.count() != 0 {
			t.Error("a restart let the hold go")
		}
		if err := d.Resume(t.Context(), "held"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if held.count() != 2 {
			t.Errorf("%d attempts after resuming", held.count())
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestRemovedHandlerCancelsWhatIsPending(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	if err := d.Hold(t.Context(), "h", "paused"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b.stage(t, event(i))
	}
	n, err := d.Remove(t.Context(), "h", "deleted by a test")
	if err != nil || n != 3 {
		t.Fatalf("%d cancelled, %v", n, err)
	}
	for _, row := range b.rows(t) {
		if row.State != "dead-letter" || row.Class.String != "cancelled" || row.LastError.String != "deleted by a test" || row.Fence == 0 {
			t.Errorf("row %+v", row)
		}
	}
	b.stage(t, event(9))
	if rows := b.rows(t); rows[len(rows)-1].Handler != string(Unrouted) {
		t.Errorf("staged after removal for %s", rows[len(rows)-1].Handler)
	}
}

// A message whose handling kills the process is charged for each crash; what was in flight beside it, once at the most.
func TestPoisonIsChargedAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	policy := RetryPolicy{First: time.Millisecond, MaxAttempts: 4}
	release := make(chan struct{})
	block := func(ctx context.Context, d Delivery) error {
		if d.Message.Seq == 1 {
			<-ctx.Done() // the process dies here
			return ctx.Err()
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h := Handler{Name: "h", Routes: []Route{{Pattern: "*"}}, RepeatKey: "message id", Outside: block}
	path := b.path
	d := b.dispatcher(t, Config{Retry: policy}, h)
	b.stage(t, event(1), event(2), event(3))
	for crash := 1; ; crash++ {
		eventually(t, "the poison runs", func() bool {
			return slices.ContainsFunc(b.rows(t), func(r row) bool { return r.ID == 1 && r.State != "pending" })
		})
		if b.rows(t)[0].State == "dead-letter" {
			if crash != 5 {
				t.Errorf("dead letter after %d crashes, want 4", crash-1)
			}
			break
		}
		d.crash()
		b.close()
		b = openBed(t, path)
		d = b.dispatcher(t, Config{Retry: policy}, h)
	}
	close(release)
	eventually(t, "the others arrive", func() bool {
		rows := b.rows(t)
		return rows[1].State == "dispatched" && rows[2].State == "dispatched"
	})
	for _, r := range b.rows(t)[1:] {
		if r.Charged > 2 {
			t.Errorf("a bystander was charged %d times", r.Charged)
		}
	}
	if r := b.rows(t)[0]; r.Class.String != "interrupted" || r.Charged != 4 {
		t.Errorf("poison: %+v", r)
	}
}

// TestTimesOfForeignWritersCanBeShown: no number in a column of times makes an answer that cannot be written.
func TestTimesOfForeignWritersCanBeShown(t *testing.T) {
	t.Parallel()
	for _, us := range []int64{math.MinInt64, math.MaxInt64, -1, 0, 253402300799999999, 253402300800000000} {
		if text, err := fromMicros(us).MarshalJSON(); err != nil {
			t.Errorf("%d microseconds: %s, %v", us, text, err)
		}
	}
}
