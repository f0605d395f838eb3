package outbox

import (
	"testing"
	"time"
)

func TestCourtesyLeavesTheLockToAProgramAtWork(t *testing.T) {
	t.Parallel()
	p := ForeignPoll{Busy: time.Millisecond, Idle: time.Millisecond, Share: 0.2, Pause: 50 * time.Millisecond}
	for _, tt := range []struct {
		name        string
		poll        ForeignPoll
		held, since time.Duration
		want        time.Duration
	}{
		{"at work", p, time.Millisecond, 0, 4 * time.Millisecond},
		{"a long turn", p, time.Second, 0, 50 * time.Millisecond},
		{"nobody at work", p, time.Millisecond, time.Hour, 0},
		{"no bound", ForeignPoll{}, time.Second, 0, 0},
		{"all of it", ForeignPoll{Share: 1, Pause: time.Second}, time.Second, 0, 0},
	} {
		if got := tt.poll.courtesy(tt.held, tt.since); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
