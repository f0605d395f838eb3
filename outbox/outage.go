package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
)

// logEvery is the interval of a line about a store that cannot be used (P25).
const logEvery = 30 * time.Second

// takeTurns works until nothing is left to do. While the store cannot be used it claims nothing, charges no message, and asks again after
// a growing, bounded wait (P24, P25, P26).
func (d *Dispatcher) takeTurns(ctx context.Context) {
	defer d.tell()
	backoff := storeBackoff()
	for {
		d.yield(ctx)
		t, err := d.takeTurn(ctx)
		if t == nil {
			return
		}
		if err == nil {
			backoff = storeBackoff()
			d.tell()
			continue
		}
		if d.config.Writer.Err() != nil {
			return
		}
		wait, _ := backoff.Next()
		select {
		case <-time.After(wait):
		case <-d.config.Writer.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// takeTurn plans a turn and commits it; nil: there was nothing to do. Stop waits for one that is under way, so that what it claims has
// been started before anybody waits for what runs.
func (d *Dispatcher) takeTurn(ctx context.Context) (*turn, error) {
	d.turning.Lock()
	defer d.turning.Unlock()
	t := d.plan()
	if t == nil {
		return nil, nil
	}
	err := d.config.Writer.First(context.WithoutCancel(ctx), t.run(d))
	d.end(t, err)
	return t, err
}

// end takes in how a turn's transaction ended. The caller holds d.turning.
func (d *Dispatcher) end(t *turn, err error) {
	d.leave(t)
	d.setDown(err)
	if err != nil {
		d.putBack(t)
		return
	}
	if d.config.Observe != nil {
		// Before the attempts start, so that an observer sees the claim before its outcome.
		d.observe(t.changes())
	}
	d.apply(t)
}

func storeBackoff() retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(5*time.Second, retry.NewExponential(50*time.Millisecond)))
}

// setDown notes whether the store can be used, and says so when that changes, and now and then while it cannot.
func (d *Dispatcher) setDown(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); err != nil && now.Sub(d.logged) >= logEvery && !errors.Is(err, ErrClosed) {
		d.logged, d.downLogged = now, true
		d.config.Logger.Warn("the store cannot be used; delivery waits", "error", err)
	}
	if err == nil && d.downLogged {
		d.downLogged = false
		d.config.Logger.Info("the store can be used again")
	}
	d.down = err
}

// Down says why the store cannot be used at the moment: an error that is ErrStoreBusy, ErrStoreFull or ErrStoreIO, or what stopped the
// writer. Nil: it can. While it cannot, nothing is claimed and no message is touched (P27).
func (d *Dispatcher) Down() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}
