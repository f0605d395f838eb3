package pull

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// bench stands for the dispatcher: it starts attempts as the queue's width allows, and stores their outcomes.
type bench struct {
	*Queue
	t        *testing.T
	busy     int
	next     outbox.DeliveryID
	outcomes chan outcome
}

type outcome struct {
	delivery outbox.Delivery
	err      error
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, outcomes: make(chan outcome, 100)}
	b.Queue = New(Config{Lease: 10 * time.Second, Cap: 25 * time.Second, Wake: func() {}})
	return b
}

// claim starts as many attempts as there is room for.
func (b *bench) claim(most int) (n int) {
	for room := min(b.Width()-b.busy, most); n < room; n++ {
		b.next++
		b.busy++
		d := outbox.Delivery{ID: b.next, Fence: 7, Attempt: 1}
		go func() { b.outcomes <- outcome{d, b.Deliver(context.Background(), d)} }()
	}
	synctest.Wait()
	return n
}

// store takes the outcome of one attempt to the disk.
func (b *bench) store(stale bool) error {
	o := <-b.outcomes
	b.busy--
	b.Settled(o.delivery, stale)
	return o.err
}

func class(err error) outbox.Class {
	if f := (*outbox.Failure)(nil); errors.As(err, &f) {
		return f.Class
	}
	return ""
}

// take asks in the background.
func (b *bench) take(ctx context.Context, most int) chan []Handed {
	got := make(chan []Handed, 1)
	go func() { got <- b.Take(ctx, "token:till", most, time.Minute) }()
	synctest.Wait()
	return got
}

func TestNothingIsClaimedUnlessSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if n := b.claim(5); n != 0 {
			t.Fatalf("%d attempts started for nobody", n)
		}
		got := b.take(t.Context(), 3)
		if n := b.claim(5); n != 3 {
			t.Fatalf("%d attempts started, asked for 3", n)
		}
		handed := <-got
		if len(handed) != 3 || b.claim(5) != 0 {
			t.Fatalf("got %d", len(handed))
		}
		go func() { b.store(false) }()
		if err := b.Settle(t.Context(), handed[0].ID, 7, nil); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"again":         b.Settle(t.Context(), handed[0].ID, 7, nil),
			"another fence": b.Settle(t.Context(), handed[1].ID, 6, nil),
			"unknown":       b.Settle(t.Context(), 99, 7, nil),
		} {
			if !errors.Is(err, ErrStale) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.Close()
		for range 2 {
			if err := b.store(false); class(err) != outbox.Snoozed {
				t.Errorf("held at the end: %v", err)
			}
		}
	})
}

func TestALeaseEndsUnlessItIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		got := b.take(t.Context(), 2)
		b.claim(2)
		handed := <-got
		time.Sleep(9 * time.Second)
		expires, err := b.Extend(handed[0].ID, 7)
		if err != nil || time.Until(expires) < 9*time.Second {
			t.Fatalf("extended to %s: %v", expires, err)
		}
		time.Sleep(2 * time.Second)
		if err := b.store(false); class(err) != outbox.Failed {
			t.Errorf("the lease ended with %v", err)
		}
		if err := b.Settle(t.Context(), handed[1].ID, 7, nil); !errors.Is(err, ErrStale) {
			t.Errorf("settled after its lease: %v", err)
		}
		// However often it is extended, it ends.
		for range 20 {
			if _, err := b.Extend(handed[0].ID, 7); err != nil {
				break
			}
			time.Sleep(2 * time.Second)
		}
		if err := b.store(false); class(err) != outbox.Failed {
			t.Errorf("the cap ended with %v", err)
		}
	})
}

func TestARequestThatBrokeOffLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := b.take(ctx, 2)
		b.claim(1)
		cancel()
		if handed := <-got; len(handed) != 0 {
			t.Fatalf("a broken request got %d", len(handed))
		}
		handed := <-b.take(t.Context(), 2)
		if len(handed) != 1 {
			t.Fatalf("the next one got %d", len(handed))
		}
		go func() { b.store(false) }()
		if err := b.Settle(t.Context(), handed[0].ID, 7, nil); err != nil {
			t.Error(err)
		}
		// With nobody to take it, it goes back uncharged.
		ctx, cancel = context.WithCancel(t.Context())
		got = b.take(ctx, 2)
		b.claim(1)
		cancel()
		<-got
		if err := b.store(false); class(err) != outbox.Snoozed {
			t.Errorf("nobody's delivery ended with %v", err)
		}
		if b.Width() != 0 {
			t.Errorf("width %d at the end", b.Width())
		}
	})
}

func TestAnOutcomeThatComesTooLateIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		got := b.take(t.Context(), 1)
		b.claim(1)
		handed := <-got
		go func() { b.store(true) }()
		if err := b.Settle(t.Context(), handed[0].ID, 7, nil); !errors.Is(err, ErrStale) {
			t.Errorf("answered %v", err)
		}
	})
}
