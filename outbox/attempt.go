package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

var (
	errStopping  = errors.New("the process stopped during this attempt")
	errTimeout   = errors.New("time-out")
	errLease     = errors.New("the lease expired before the handler returned")
	errStale     = errors.New("the lease was lost before the effect could be committed")
	errExited    = errors.New("the handler ended its goroutine")
	errAbandoned = errors.New("the process ended during this attempt")
)

// attempt is one handler run. Nothing of the database is held open while it lasts.
type attempt struct {
	lane     *lane
	delivery Delivery
	started  time.Time     // by the wall clock, as it is stored
	began    time.Time     // by the monotonic one, which durations are taken from
	ahead    time.Duration // how far the clock had jumped ahead by then
	suspect  bool
	probe    bool        // sent while the lane's breaker was open
	expiry   *time.Timer // monotonic: a jump of the wall clock neither ends nor lengthens a lease
	expired  bool
}

// start runs the attempts of a committed claim. The caller holds d.mu.
func (d *Dispatcher) start(c claim) {
	for _, dl := range c.due.deliveries {
		a := &attempt{lane: c.lane, delivery: dl, started: d.config.now(), began: time.Now(), ahead: d.clock.ahead, suspect: c.suspect && !c.lane.elsewhere(), probe: c.probe}
		c.lane.busy++
		d.running[a] = struct{}{}
		a.expiry = time.AfterFunc(c.lane.leaseFor, func() { d.expire(a) })
		d.attempts.Go(func() { d.run(a) })
	}
}

func (d *Dispatcher) run(a *attempt) {
	ctx, cancel := context.WithTimeoutCause(d.attemptCtx, a.lane.handler.Timeout, errTimeout)
	defer cancel()
	o := outcome{attempt: a}
	err := errExited // unless call returns
	defer func() {
		if err != nil {
			o.failure = failureOf(ctx, err)
		}
		a.expiry.Stop()
		d.ended(o)
	}()
	err = d.call(ctx, a, &o)
}

// ended hands an outcome to the next turn, and what it tells of the target to the lane at once.
func (d *Dispatcher) ended(o outcome) {
	a := o.attempt
	o.ended, o.took = d.config.now(), time.Since(a.began)
	class := Delivered
	if o.failure != nil {
		class = o.failure.Class
	}
	d.mu.Lock()
	d.outcomes = append(d.outcomes, o)
	if a.lane.learn(class, a.probe, time.Now()) {
		d.breakerChanged(a.lane)
	}
	a.lane.gone = a.lane.gone || class == Gone
	d.mu.Unlock()
	d.signal()
}

// breakerChanged tells of a breaker that opened or closed. The caller holds d.mu.
func (d *Dispatcher) breakerChanged(l *lane) {
	d.told = append(d.told, l.handler.Name)
	if l.breaker.open() {
		d.config.Logger.Warn("a target cannot be reached; its deliveries wait", "handler", l.handler.Name)
		return
	}
	d.config.Logger.Info("a target can be reached again", "handler", l.handler.Name)
}

// call runs the handler. A panic is that message's failure, not the process's end.
func (d *Dispatcher) call(ctx context.Context, a *attempt, o *outcome) (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.config.Logger.Error("handler panicked", "handler", a.delivery.Handler, "message", a.delivery.Message.ID, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("the handler panicked: %v", r)
		}
	}()
	dl := a.delivery
	if readers := a.lane.handler.Readers; readers != nil {
		if dl.Message, err = readers.Lift(dl.Message); err != nil {
			return Permanent(err)
		}
	}
	if a.lane.handler.Outside != nil {
		return a.lane.handler.Outside(ctx, dl)
	}
	err = d.runInTx(ctx, a, dl, o)
	if errors.Is(err, errStale) {
		o.stale, err = true, nil
	}
	o.settled = err == nil
	return err
}

const insertInbox = `INSERT INTO outbox_inbox(handler, tenant, message, handled_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`

// runInTx makes the handler's change, the mark that the message was handled, and the settling one savepoint (P18, P19). The settling
// comes last: no row under this fence, no commit.
func (d *Dispatcher) runInTx(ctx context.Context, a *attempt, dl Delivery, o *outcome) error {
	return d.config.Writer.First(ctx, func(ctx context.Context, tx *Tx) error {
		o.suppressed = false
		n, err := execCount(ctx, tx, insertInbox, string(dl.Handler), string(dl.Message.Tenant), string(dl.Message.ID), micros(tx.Now))
		if err != nil {
			return fmt.Errorf("mark message as handled: %w", err)
		}
		if o.suppressed = n == 0; !o.suppressed {
			if err := a.lane.handler.InTx(ctx, tx, dl); err != nil {
				return err
			}
		}
		n, err = execCount(ctx, tx, settleDispatched, micros(tx.Now), o.suppressed, d.owner, int64(dl.Fence), idList([]Delivery{dl}))
		if err != nil {
			return fmt.Errorf("settle delivery: %w", err)
		}
		if n == 0 {
			return errStale
		}
		return unblock(ctx, tx, dl)
	})
}

// expire hands an attempt that outlived its lease to the next turn, which returns the delivery to pending (P17).
func (d *Dispatcher) expire(a *attempt) {
	d.mu.Lock()
	if _, running := d.running[a]; running && !a.expired {
		a.expired = true
		d.overdue = append(d.overdue, outcome{attempt: a, failure: &Failure{Class: Failed, Err: errLease},
			ended: d.config.now(), took: time.Since(a.began)})
	}
	d.mu.Unlock()
	d.signal()
}

// expireByWallClock is a seeded bug. The caller holds d.mu.
func (d *Dispatcher) expireByWallClock(now time.Time) {
	for a := range d.running {
		if !a.expired && now.After(a.delivery.LeaseExpires) {
			a.expired = true
			d.overdue = append(d.overdue, outcome{attempt: a, failure: &Failure{Class: Failed, Err: errLease}, ended: now})
		}
	}
}
