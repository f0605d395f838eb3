package outbox

import (
	"context"
	"time"
)

const (
	// active is how long another program counts as being at work after a commit of its own.
	active = time.Second
	// quiet is how long a turn goes on being right behind a commit: a program that has just written is the least likely to write at once. One that
	// has been seen to write twice within so long or a little more is let through until it has not for so long.
	quiet = time.Millisecond
)

// bystander is what the dispatcher knows of another program that writes to the same database. The zero value is one that never did.
type bystander struct {
	at    time.Time     // when it was last seen to have committed
	gap   time.Duration // about how long it lets pass between two commits
	burst time.Time     // when it was last seen to write several times in a row

	held time.Duration // how long the last turn had the write lock
	free time.Time     // since when it has been left alone
}

// committed notes a commit that was seen.
func (b *bystander) committed(now time.Time) {
	gap := min(now.Sub(b.at), active)
	b.at = now
	if gap <= 2*quiet {
		b.burst = now
	}
	b.gap += (gap - b.gap) / 8
}

// courtesy is how long a turn that has waited so long waits yet, unless a commit is seen before. A program that finds the lock held waits by sleeping,
// a millisecond and more in steps that grow, however short the turn is. So turns leave it alone for a share of the time, and go right behind a
// commit, where they fall into the time that it needs for other things.
func (p ForeignPoll) courtesy(b bystander, now time.Time, waited time.Duration) time.Duration {
	since := now.Sub(b.at)
	if p.Share <= 0 || p.Share >= 1 || since > active || waited >= p.Pause {
		return 0
	}
	rest := min(p.Pause, time.Duration(float64(b.held)*(1-p.Share)/p.Share)) - now.Sub(b.free)
	behind := since
	if now.Sub(b.burst) < active {
		behind -= quiet
	}
	switch {
	case rest > 0:
		return rest
	case behind < 0:
		return -behind
	case behind < quiet, since > 4*b.gap, b.gap > p.Pause:
		return 0
	}
	return p.Pause - waited
}

// sawCommit notes a commit of another program, and has a turn that waits for one look at the time again.
func (d *Dispatcher) sawCommit(now time.Time) {
	d.mu.Lock()
	d.bystander.committed(now)
	d.mu.Unlock()
	select {
	case d.committed <- struct{}{}:
	default:
	}
}

// yield waits as long as courtesy asks for, before a turn.
func (d *Dispatcher) yield(ctx context.Context) {
	for begun := time.Now(); ; {
		d.mu.Lock()
		b := d.bystander
		d.mu.Unlock()
		now := time.Now()
		wait := d.config.Foreign.courtesy(b, now, now.Sub(begun))
		if wait <= 0 {
			return
		}
		select {
		case <-d.committed:
		case <-time.After(wait):
		case <-d.config.Writer.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// leave notes how long a turn had the write lock.
func (d *Dispatcher) leave(t *turn) {
	if t.opened.IsZero() {
		return // it never had it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bystander.free = time.Now()
	d.bystander.held = d.bystander.free.Sub(t.opened)
}
