package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Stop ends delivery: nothing more is claimed, what runs may finish until ctx is done, and what then still runs gives its lease back
// without charge. A handler that ignores its context is not waited for.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	if !d.started || d.stopping {
		d.mu.Unlock()
		return nil
	}
	d.stopping = true
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		d.turning.Lock()   // a turn that was planned before may still claim
		d.turning.Unlock() //nolint:staticcheck // its end is all that is waited for
		d.attempts.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-d.config.Writer.Done():
	}
	d.cancelRuns(errStopping)
	select {
	case <-ended:
	case <-d.config.Writer.Done():
	case <-time.After(time.Second):
		d.release()
	}
	d.cancelLoop()
	<-d.stopped
	d.watching.Wait()
	if err := d.config.Writer.Err(); err != nil {
		return fmt.Errorf("stop dispatcher: %w", err)
	}
	return nil
}

// release settles attempts whose handlers did not return, so that the next start need not take them for victims of a crash.
func (d *Dispatcher) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.running {
		if !a.expired && !slices.ContainsFunc(d.outcomes, func(o outcome) bool { return o.attempt == a }) {
			a.expired = true
			d.overdue = append(d.overdue, outcome{attempt: a, failure: &Failure{Class: Interrupted, Err: errStopping}, ended: d.config.now()})
		}
	}
}
