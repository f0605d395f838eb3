package outbox

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestCourtesyLeavesTheLockToAProgramAtWork(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	p := ForeignPoll{Busy: ms, Idle: ms, Share: 0.2, Pause: 50 * ms}
	steady, bursts := bystander{gap: 5 * ms, held: ms}, bystander{gap: 5 * ms, held: ms, burst: time.Now()}
	for _, tt := range []struct {
		name                 string
		poll                 ForeignPoll
		bystander            bystander
		sinceTurn, sinceSeen time.Duration
		waited               time.Duration
		want                 time.Duration
	}{
		{"right behind a commit", p, steady, time.Second, 0, 0, 0},
		{"its share is used up", p, steady, ms, 0, 0, 3 * ms},
		{"a long turn", p, bystander{gap: 5 * ms, held: time.Second}, 0, 0, 0, 50 * ms},
		{"it may be writing several times in a row", p, bursts, time.Second, ms / 4, 0, ms - ms/4},
		{"it has written several times in a row", p, bursts, time.Second, ms, 0, 0},
		{"the next of several in a row is near", p, bursts, time.Second, 2 * ms, 0, 50 * ms},
		{"the next commit is near", p, steady, time.Second, 4 * ms, 10 * ms, 40 * ms},
		{"the next commit does not come", p, steady, time.Second, 21 * ms, 0, 0},
		{"commits are far apart", p, bystander{gap: 300 * ms, held: ms}, time.Second, 100 * ms, 0, 0},
		{"waited for long enough", p, steady, 0, 0, 50 * ms, 0},
		{"nobody at work", p, steady, 0, time.Hour, 0, 0},
		{"nobody was ever seen", p, bystander{}, 0, 1 << 60, 0, 0},
		{"no bound", ForeignPoll{}, steady, 0, 0, 0, 0},
		{"all of it", ForeignPoll{Share: 1, Pause: time.Second}, steady, 0, 0, 0, 0},
	} {
		now := time.Now()
		tt.bystander.at, tt.bystander.free = now.Add(-tt.sinceSeen), now.Add(-tt.sinceTurn)
		if got := tt.poll.courtesy(tt.bystander, now, tt.waited); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestBystanderLearnsItsGap(t *testing.T) {
	t.Parallel()
	var b bystander
	now := time.Now()
	b.committed(now)
	if b.gap <= 0 || b.gap > active {
		t.Errorf("after the first commit the gap is %s", b.gap)
	}
	for range 100 {
		now = now.Add(5 * time.Millisecond)
		b.committed(now)
	}
	if b.gap < 4*time.Millisecond || b.gap > 6*time.Millisecond {
		t.Errorf("commits 5 ms apart: %s", b.gap)
	}
}

// TestYieldGoesRightBehindACommit has a program commit every ten milliseconds, and turns wait.
func TestYieldGoesRightBehindACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		defer b.close()
		d, err := NewDispatcher(Config{Writer: b.writer, Read: b.read, Foreign: ForeignPoll{Busy: 1, Idle: 1, Share: 0.5, Pause: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 30 {
				time.Sleep(10 * time.Millisecond)
				d.sawCommit(time.Now())
			}
		}()
		time.Sleep(105 * time.Millisecond) // halfway between two
		for range 5 {
			d.yield(t.Context())
			d.mu.Lock()
			last := d.bystander.at
			d.mu.Unlock()
			if behind := time.Since(last); behind >= quiet {
				t.Errorf("a turn went %s after a commit", behind)
			}
			d.leave(&turn{opened: time.Now().Add(-time.Millisecond)})
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(time.Second)
	})
}
