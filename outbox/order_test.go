package outbox

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestDeadLetterAndItsKey: what a dead letter does to the next message of its key, by how it died, by the handler's mode then, and by the mode
// that an operator changes it to.
func TestDeadLetterAndItsKey(t *testing.T) {
	t.Parallel()
	const first, second = "first", "second"
	for _, c := range []struct {
		name        string
		crash       bool // it dies in a crash; otherwise its target rejects it
		skip        bool // the mode when it dies
		then        bool // the mode that follows
		next, final string
	}{
		{"rejected while blocking", false, false, false, "pending", "pending"},
		{"rejected while blocking, then skipped", false, false, true, "pending", "dispatched"},
		{"rejected while skipping", false, true, true, "dispatched", "dispatched"},
		{"rejected while skipping, then blocking", false, true, false, "dispatched", "dispatched"},
		{"killed while blocking", true, false, false, "pending", "pending"},
		{"killed while blocking, then skipped", true, false, true, "pending", "dispatched"},
		{"killed while skipping", true, true, true, "dispatched", "dispatched"},
		{"killed while skipping, then blocking", true, true, false, "dispatched", "dispatched"},
	} {
		for _, running := range []bool{true, false} { // the mode is changed while the dispatcher runs, or between two runs
			t.Run(c.name+map[bool]string{true: "", false: " between runs"}[running], func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "thing-done")
				handle := func(ctx context.Context, d Delivery) error {
					switch {
					case string(d.Message.ID) != first:
						return nil
					case c.crash:
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return Permanent(errors.New("no"))
				}
				start := func(skip bool) *Dispatcher {
					h := outside("h", 4, handle)
					h.SkipDeadLetters = skip
					return b.dispatcher(t, Config{Poll: time.Hour, Retry: RetryPolicy{MaxAttempts: 1}}, h)
				}
				reopen := func(d *Dispatcher) {
					d.crash()
					b.close()
					b = openBed(t, b.path)
				}
				d := start(c.skip)
				for _, id := range []MessageID{first, second} {
					b.stage(t, Message{ID: id, Type: "thing-done", OrderingKey: "k", Payload: []byte(`{}`)})
				}
				if c.crash {
					eventually(t, "first in flight", func() bool { return b.state(t, 0) == "processing" })
					reopen(d)
					d = start(c.skip)
				}
				eventually(t, "first dead, second "+c.next, func() bool { return b.state(t, 0) == "dead-letter" && b.state(t, 1) == c.next })
				if running {
					h := outside("h", 4, handle)
					h.SkipDeadLetters = c.then
					if err := d.Register(t.Context(), h); err != nil {
						t.Fatal(err)
					}
				} else {
					reopen(d)
					d = start(c.then)
				}
				eventually(t, "second "+c.final, func() bool { return b.state(t, 1) == c.final })
				b.tallied(t, d)
			})
		}
	}
}

// A removed handler leaves nothing behind that would hold back, or be delivered by, a later one of its name.
func TestRemovedHandlerLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	begun, end := make(chan struct{}), make(chan struct{})
	d := b.dispatcher(t, Config{Poll: time.Hour}, outside("h", 4, func(_ context.Context, d Delivery) error {
		if d.Message.OrderingKey == "dies" {
			return Permanent(errors.New("no"))
		}
		close(begun)
		<-end
		return errors.New("not yet")
	}))
	b.stage(t, Message{Type: "thing-done", OrderingKey: "dies", Payload: []byte(`{}`)})
	eventually(t, "dead letter", func() bool { return b.state(t, 0) == "dead-letter" })
	b.stage(t, Message{Type: "thing-done", OrderingKey: "runs", Payload: []byte(`{}`)}, Message{Type: "thing-done", OrderingKey: "runs", Payload: []byte(`{}`)})
	<-begun
	if n, err := d.Remove(t.Context(), "h", "deleted"); n != 1 || err != nil {
		t.Errorf("removed: %d cancelled, %v; want the one that waited", n, err)
	}
	close(end)
	eventually(t, "the running attempt is cancelled when it fails", func() bool { return b.state(t, 1) == "dead-letter" })
	if row := b.rows(t)[1]; row.Class.String != string(Cancelled) || row.LastError.String != "the handler was removed during this attempt, which ended so: not yet" {
		t.Errorf("cancelled: %+v", row)
	}
	var r recorder
	if err := d.Register(t.Context(), handler("h", "*", &r)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"dies", "runs"} {
		b.stage(t, Message{Type: "thing-done", OrderingKey: key, Payload: []byte(`{}`)})
	}
	eventually(t, "its successor gets what is new", func() bool { return b.state(t, 3) == "dispatched" && b.state(t, 4) == "dispatched" })
	b.tallied(t, d)
}
