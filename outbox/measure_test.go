package outbox

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"time"
)

func TestOutcomesAreMeasured(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(d Delivery) error {
		switch {
		case d.Message.ID == "never":
			return Permanent(errors.New("no"))
		case d.Attempt == 1:
			return errors.New("not yet")
		}
		return nil
	}}
	var mu sync.Mutex
	got := map[Outcome]int{}
	d := b.dispatcher(t, Config{Poll: time.Hour, Retry: RetryPolicy{First: time.Millisecond}, Measure: func(o Outcome) {
		if o.Duration <= 0 {
			t.Errorf("no duration: %+v", o)
		}
		o.Duration = 0
		mu.Lock()
		got[o]++
		mu.Unlock()
	}}, handler("h", "*", &r))
	for _, id := range []MessageID{"one", "two", "never"} {
		m := event(1)
		m.ID = id
		b.stage(t, m)
	}
	eventually(t, "settled", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 2 && l.Total.Failed == 1
	})
	mu.Lock()
	defer mu.Unlock()
	want := map[Outcome]int{
		{Handler: "h", Result: ResultRetry, Class: Failed}:        2,
		{Handler: "h", Result: ResultDelivered, Class: Delivered}: 2,
		{Handler: "h", Result: ResultDeadLetter, Class: Rejected}: 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("measured %v, want %v", got, want)
	}
}
