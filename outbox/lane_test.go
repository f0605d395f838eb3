package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errRefused = &Failure{Class: Unreachable, Err: errors.New("connection refused")}

// site is a target behind a line that can be cut.
type site struct {
	mu       sync.Mutex
	cut      bool
	attempts []time.Time
	reached  []Delivery
	running  int
	widest   int
	takes    time.Duration
}

func (l *site) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func (l *site) deliver(_ context.Context, d Delivery) error {
	l.mu.Lock()
	l.attempts = append(l.attempts, time.Now())
	cut := l.cut
	l.running++
	l.widest = max(l.widest, l.running)
	l.mu.Unlock()
	if !cut {
		time.Sleep(l.takes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if cut {
		return errRefused
	}
	l.reached = append(l.reached, d)
	return nil
}

func (l *site) counts() (attempts, reached int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.attempts), len(l.reached)
}

// forget makes the counts begin again, and returns how many ran side by side.
func (l *site) forget() (widest int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	widest, l.widest, l.attempts, l.reached = l.widest, l.running, nil, nil
	return widest
}

func outside(name string, concurrency int, fn Outside) Handler {
	return Handler{Name: HandlerName(name), Routes: []Route{{Pattern: "*"}}, Outside: fn, RepeatKey: "message id", Concurrency: concurrency}
}

func events(from, n int) []Message {
	var list []Message
	for i := range n {
		list = append(list, event(from+i))
	}
	return list
}

func laneOf(t *testing.T, d *Dispatcher, name HandlerName) LaneBacklog {
	t.Helper()
	b, err := d.Backlog(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range b.Lanes {
		if l.Handler == name {
			return l
		}
	}
	t.Fatalf("no lane %s", name)
	return LaneBacklog{}
}

// A site that was offline for three weeks delivers all of it, and what waited was not touched.
func TestThreeWeeksOffline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		l := &site{cut: true}
		d := b.dispatcher(t, Config{Poll: 10 * time.Hour, Breaker: BreakerPolicy{ProbeCap: 2 * time.Hour}}, outside("h", 20, l.deliver))
		b.stage(t, events(0, 5)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.stage(t, events(5, 400)...)
		before := b.rows(t)[100:]
		time.Sleep(21 * 24 * time.Hour)
		synctest.Wait()
		attempts, _ := l.counts()
		lane := laneOf(t, d, "h")
		if lane.Breaker.State != BreakerOpen || lane.Breaker.OpenedAt.IsZero() || lane.Breaker.NextProbe.IsZero() || lane.Pending != 405 {
			t.Fatalf("after three weeks: %+v", lane)
		}
		if attempts > 21*12*2 {
			t.Errorf("%d attempts in three weeks without a line", attempts)
		}
		// All but one of them, which another probe may have used, wait as they were staged.
		touched := 0
		for i, r := range b.rows(t)[100:] {
			if r.Charged != 0 {
				t.Errorf("delivery %d was charged", r.ID)
			}
			if r.Attempt != 0 || r.Next != before[i].Next {
				touched++
			}
		}
		if touched > attempts {
			t.Errorf("%d deliveries touched by %d attempts", touched, attempts)
		}
		l.set(false)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for _, r := range b.rows(t) {
			if r.State != "dispatched" || r.Charged != 1 {
				t.Errorf("when the line was back: %+v", r)
			}
		}
		if lane := laneOf(t, d, "h"); lane.Breaker.State != BreakerClosed || lane.Pending != 0 {
			t.Errorf("when the line was back: %+v", lane)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

// A process that starts while a target is out of reach probes it, rather than finding that out again with all that it may attempt.
func TestBreakerIsOpenAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		away, near := &site{cut: true}, &site{}
		start := func() *Dispatcher {
			return b.dispatcher(t, Config{Poll: time.Hour}, outside("away", 20, away.deliver), outside("near", 20, near.deliver))
		}
		d := start()
		b.stage(t, events(0, 60)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.crash()
		b.close()
		away.forget()
		time.Sleep(time.Hour)
		b = openBed(t, b.path)
		d = start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// At once, and then after 1, 2 and 4 seconds or so, which a crash in mid-probe could double.
		if attempts, _ := away.counts(); attempts < 3 || attempts > 6 {
			t.Errorf("%d attempts in the first ten seconds", attempts)
		}
		if lane := laneOf(t, d, "away"); lane.Breaker.State != BreakerOpen || time.Since(lane.Breaker.OpenedAt) < time.Hour {
			t.Errorf("after the restart: %+v", lane.Breaker)
		}
		if lane := laneOf(t, d, "near"); lane.Breaker.State != BreakerClosed || lane.Pending != 0 {
			t.Errorf("the lane beside it: %+v", lane)
		}
		away.set(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, reached := away.counts(); reached != 60 {
			t.Errorf("%d reached the target once it was back", reached)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestBreakerProbesOneAtATimeAndRamps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		l := &site{cut: true, takes: time.Second}
		d := b.dispatcher(t, Config{Poll: time.Hour}, outside("h", 20, l.deliver))
		b.stage(t, events(0, 600)...)
		synctest.Wait()
		if lane := laneOf(t, d, "h"); lane.Breaker.State != BreakerOpen {
			t.Fatalf("after twenty unreachable outcomes: %+v", lane)
		}
		l.forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		l.mu.Lock()
		probes := l.attempts
		l.mu.Unlock()
		if len(probes) < 18 || len(probes) > 28 {
			t.Errorf("%d probes in an hour", len(probes))
		}
		want := 2 * time.Second
		for i := range probes[1:] {
			if gap := probes[i+1].Sub(probes[i]); gap < want*8/10 || gap > want*12/10 {
				t.Errorf("probe %d came after %s, want %s within 20 %%", i+2, gap, want)
			}
			want = min(2*want, 5*time.Minute)
		}
		if widest := l.forget(); widest != 1 {
			t.Errorf("%d probes side by side", widest)
		}
		l.set(false)
		if err := d.Resume(t.Context(), "h"); err != nil { // an operator need not wait for the probe
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if state := laneOf(t, d, "h").Breaker.State; state != BreakerProbing {
			t.Errorf("while the probe is out the breaker is %s", state)
		}
		time.Sleep(time.Second)
		l.forget()
		for _, want := range []int{2, 4, 8, 16, 20} {
			time.Sleep(9 * time.Second)
			if widest := l.forget(); widest != want {
				t.Errorf("%d side by side, want %d", widest, want)
			}
			time.Sleep(time.Second)
			l.forget()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lane := laneOf(t, d, "h"); lane.Dispatched != 600 || lane.Width != 20 {
			t.Errorf("in the end: %+v", lane)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

// One message that its target cuts the line for neither stops the lane nor is charged.
func TestAMessageThatCutsTheLineStandsAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		r := recorder{answer: func(d Delivery) error {
			if d.Message.Seq == 1 {
				return errRefused
			}
			return nil
		}}
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
		b.stage(t, events(0, 1)...)
		time.Sleep(time.Hour) // it has opened the breaker by itself
		b.stage(t, events(1, 200)...)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		lane := laneOf(t, d, "h")
		if lane.Dispatched != 200 || lane.Pending != 1 {
			t.Errorf("%+v", lane)
		}
		if row := b.rows(t)[0]; row.Charged != 0 || row.Class.String != "unreachable" {
			t.Errorf("%+v", row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestUnreachableEndsAtItsOwnHorizon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		l := &site{cut: true}
		d := b.dispatcher(t, Config{Poll: 20 * time.Hour, Breaker: BreakerPolicy{ProbeCap: 12 * time.Hour}}, outside("h", 4, l.deliver))
		b.stage(t, event(0))
		time.Sleep(89 * 24 * time.Hour)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "pending" || row.Charged != 0 {
			t.Errorf("before the horizon: %+v", row)
		}
		time.Sleep(2 * 24 * time.Hour)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "dead-letter" || row.Class.String != "expired" {
			t.Errorf("after the horizon: %+v", row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

// The ordinary horizon stands still while the lane is held.
func TestHorizonStandsStillInAHeldLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var calls atomic.Int32
		d := b.dispatcher(t, Config{Poll: 24 * time.Hour}, outside("h", 4, func(context.Context, Delivery) error {
			calls.Add(1)
			return RetryAfter(12*time.Hour, errors.New("later"))
		}))
		b.stage(t, event(0))
		time.Sleep(30 * time.Hour) // three attempts, two waits behind it
		if err := d.Hold(t.Context(), "h", "paused by a test"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		if err := d.Resume(t.Context(), "h"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "pending" || row.Attempt != 4 || row.Charged != 0 {
			t.Errorf("after a month in a held lane: %+v", row)
		}
		time.Sleep(4 * 24 * time.Hour)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "dead-letter" || row.Class.String != "expired" || calls.Load() != 8 {
			t.Errorf("after more than three days of waits and %d attempts: %+v", calls.Load(), row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestRateBoundsTheAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		slow, quick := &site{}, &site{}
		hs, hq := outside("slow", 100, slow.deliver), outside("quick", 100, quick.deliver)
		hs.Rate, hq.Rate = 2.5, 50
		d := b.dispatcher(t, Config{Poll: time.Hour}, hs, hq)
		b.stage(t, events(0, 500)...)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n, _ := slow.counts(); n != 11 { // the first at once, then one each 400 ms
			t.Errorf("%d attempts in four seconds at 2.5 a second", n)
		}
		if n, _ := quick.counts(); n < 200 || n > 205 {
			t.Errorf("%d attempts in four seconds at 50 a second", n)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestTenantsShareALane(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"one": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "thing-done")
			var mu sync.Mutex
			count := map[TenantID]int{}
			all := make(chan struct{})
			d := b.dispatcher(t, Config{Poll: time.Hour}, outside("h", concurrency, func(_ context.Context, d Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				if len(all) == 0 && count["a"]+count["b"] < 1000 {
					if count[d.Message.Tenant]++; count["a"]+count["b"] == 1000 {
						close(all)
					}
				}
				return nil
			}))
			if err := d.Hold(t.Context(), "h", "until all is there"); err != nil {
				t.Fatal(err)
			}
			for _, tenant := range []TenantID{"a", "b", "c"} {
				list := events(0, 800)
				for i := range list {
					list[i].Tenant = tenant
					if tenant == "c" { // scheduled: it has nothing due, and must take nobody's turn
						list[i].DeliverAt = time.Now().Add(time.Hour)
					}
				}
				b.stage(t, list...)
			}
			if err := d.Resume(t.Context(), "h"); err != nil {
				t.Fatal(err)
			}
			<-all
			mu.Lock()
			defer mu.Unlock()
			if count["a"] < 400 || count["b"] < 400 {
				t.Errorf("of 1,000 deliveries: %v", count)
			}
		})
	}
}

func TestADeadAndASlowLaneDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var r recorder
		d := b.dispatcher(t, Config{Poll: time.Hour}, handler("quick", "*", &r),
			outside("slow", 2, func(ctx context.Context, _ Delivery) error { <-ctx.Done(); return context.Cause(ctx) }),
			outside("dead", 2, func(context.Context, Delivery) error { time.Sleep(10 * time.Second); return errRefused }))
		for i := range 50 {
			b.stage(t, event(i))
			staged := time.Now()
			synctest.Wait()
			if r.count() != i+1 || time.Since(staged) != 0 {
				t.Fatalf("message %d is not delivered at once", i)
			}
			time.Sleep(700 * time.Millisecond)
		}
		for _, name := range []HandlerName{"slow", "dead"} {
			if l := laneOf(t, d, name); l.Pending+l.Processing != 50 {
				t.Errorf("%+v", l)
			}
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestGoneHoldsTheLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		r := recorder{answer: func(Delivery) error { return &Failure{Class: Gone, Status: 410, Err: errors.New("410 Gone")} }}
		h := handler("h", "*", &r)
		h.Concurrency = 1
		var told []HandlerName
		d := b.dispatcher(t, Config{Poll: time.Hour, ObserveLane: func(name HandlerName) { told = append(told, name) }}, h)
		b.stage(t, events(0, 10)...)
		time.Sleep(time.Hour)
		synctest.Wait()
		check := func(d *Dispatcher) {
			t.Helper()
			lane := laneOf(t, d, "h")
			if r.count() != 1 || lane.Failed != 1 || lane.Held != 9 || lane.Hold != TargetGone {
				t.Errorf("%d attempts, %+v", r.count(), lane)
			}
			if lane.HeldBytes != 9*int64(len(event(1).Payload)) || lane.HeldBytesEstimated || lane.OldestPending < time.Hour {
				t.Errorf("%+v", lane)
			}
		}
		check(d)
		if len(told) != 1 || told[0] != "h" {
			t.Errorf("told of %v", told)
		}
		_ = d.Stop(context.Background())
		d = b.dispatcher(t, Config{Poll: time.Hour}, h)
		synctest.Wait()
		check(d)
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		if err := d.Resume(t.Context(), "h"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lane := laneOf(t, d, "h"); lane.Dispatched != 9 {
			t.Errorf("after resuming: %+v", lane)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}
