package outbox

import (
	"context"
	"time"
)

// active is how long another program counts as being at work after a commit of its own.
const active = time.Second

// courtesy is how long the write lock is left to another program that is at work, after a turn that held it so long: a program that finds it
// held waits by sleeping, in steps that grow, so that one which is taken again at once keeps it waiting far longer than a turn lasts.
func (p ForeignPoll) courtesy(held, sinceForeign time.Duration) time.Duration {
	if p.Share <= 0 || p.Share >= 1 || sinceForeign > active {
		return 0
	}
	return min(p.Pause, time.Duration(float64(held)*(1-p.Share)/p.Share))
}

// yield waits as long as courtesy asks for.
func (d *Dispatcher) yield(ctx context.Context, held time.Duration) {
	d.mu.Lock()
	since := time.Since(d.foreignAt)
	d.mu.Unlock()
	pause := d.config.Foreign.courtesy(held, since)
	if pause <= 0 {
		return
	}
	select {
	case <-time.After(pause):
	case <-d.config.Writer.Done():
	case <-ctx.Done():
	}
}
