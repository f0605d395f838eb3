package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
)

const selectArrivals = `SELECT handler, count(*), max(id) FROM outbox_deliveries WHERE id > ? GROUP BY handler`

// arrival is what was staged for a handler since the last turn.
type arrival struct {
	handler HandlerName
	count   int64
}

// turn is one short transaction of the dispatcher: it settles what ended, looks at what arrived, and claims what now fits. Both ride in
// one commit, so that a busy outbox pays for one sync where it would pay for two.
type turn struct {
	outcomes []outcome
	overdue  []outcome
	looks    []look
	suspects []look // lanes that may try a delivery that was in flight when the process ended

	replans []*lane // lanes whose plan an earlier clock may have made
	shifts  []*lane // every lane, when the clock has jumped

	opened time.Time // when the transaction had its lock

	// What the transaction found; begun afresh if the writer runs it again.
	jump     time.Duration
	unmended []*lane // of the replans: there is more
	cursor   DeliveryID
	arrivals []arrival
	staged   []Change // the arrivals one by one, when somebody observes
	claims   []claim
	innocent []*lane // lanes that turned out to hold no such delivery
}

// look is a lane that has room, as it was when the turn was planned.
type look struct {
	lane  *lane
	limit int
	due   bool // something is known to be due
	probe bool // the breaker is open
}

// claim is what one lane got.
type claim struct {
	lane    *lane
	due     due
	next    time.Time
	suspect bool
	probe   bool
}

// countEvery is how often arrivals are counted that no lane has room for.
const countEvery = 250 * time.Millisecond

// plan takes what there is to do. It returns nil when there is nothing.
func (d *Dispatcher) plan() *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, jump := d.clock.read(d.config)
	mono := time.Now()
	if jump == 0 || len(d.lanes) == 0 {
		d.clock.account(now)
	}
	if trusted := d.config.trusted(now); trusted == d.untrusted {
		d.trustChanged(trusted)
	}
	for name := range d.stirred {
		if l := d.lanes[name]; l != nil {
			l.dirty = true
		}
	}
	clear(d.stirred)
	if mutant.WallClockLease {
		d.expireByWallClock(now)
	}
	t := &turn{outcomes: d.outcomes, overdue: d.overdue}
	d.outcomes, d.overdue = nil, nil
	// A slot is free as soon as its handler returned, and its outcome is settled before the next claim of the same turn.
	returned := map[*lane]int{}
	for i := range t.outcomes {
		returned[t.outcomes[i].attempt.lane]++
		d.consider(&t.outcomes[i])
	}
	for i := range t.overdue {
		d.consider(&t.overdue[i])
	}
	for _, l := range d.lanes {
		if jump != 0 {
			t.shifts = append(t.shifts, l)
		}
		if l.replan {
			t.replans = append(t.replans, l)
		}
		if d.stopping || d.holdOf(l) != "" || l.gone {
			continue
		}
		room, _ := l.room(mono, returned[l])
		if room <= 0 {
			continue
		}
		due := l.dirty || (!l.next.IsZero() && !l.next.After(now))
		k := look{lane: l, limit: min(room, d.config.ClaimBatch), due: due, probe: l.breaker.open()}
		if due || d.arrived || returned[l] > 0 {
			t.looks = append(t.looks, k)
		}
		if l.suspected && !d.suspectRuns {
			t.suspects = append(t.suspects, k)
		}
	}
	if len(t.outcomes)+len(t.overdue)+len(t.looks)+len(t.suspects)+len(t.replans)+len(t.shifts) == 0 {
		counts := d.arrived && !d.stopping && mono.Sub(d.counted) >= countEvery
		if !counts && d.down == nil { // a store that was down is asked whether it is back, even when there is nothing to do
			return nil
		}
	}
	d.arrived = false
	return t
}

// consider adds to an outcome what settling it depends on. The caller holds d.mu.
func (d *Dispatcher) consider(o *outcome) {
	o.outage = o.attempt.lane.breaker.open()
}

// run is the turn's transaction.
func (t *turn) run(d *Dispatcher) Command {
	return func(ctx context.Context, tx *Tx) error {
		t.opened = time.Now()
		t.cursor, t.arrivals, t.staged, t.claims, t.innocent = d.cursor, nil, nil, nil, nil
		if err := t.tellTime(ctx, tx, d); err != nil {
			return err
		}
		if err := d.settleAll(ctx, tx, t.outcomes); err != nil {
			return err
		}
		if err := d.settleAll(ctx, tx, t.overdue); err != nil {
			return err
		}
		if d.config.Observe != nil {
			if err := t.readStaged(ctx, tx); err != nil {
				return err
			}
		}
		if err := t.arrive(ctx, tx); err != nil {
			return err
		}
		if err := t.claimSuspect(ctx, tx, d); err != nil {
			return err
		}
		for _, k := range t.looks {
			l, limit := k.lane, k.limit
			for _, c := range t.claims {
				if c.lane == l {
					limit -= len(c.due.deliveries)
				}
			}
			if limit <= 0 || !t.wants(k) {
				continue
			}
			found, next, err := d.claimDue(ctx, tx, l, limit, k.probe)
			if err != nil {
				return err
			}
			if err := d.bury(ctx, tx, l, found.unfit); err != nil {
				return err
			}
			t.claims = append(t.claims, claim{lane: l, due: found, next: next, probe: k.probe})
		}
		d.seen = d.config.Writer.place()
		d.seen.kept++
		return nil
	}
}

// wants spares a lane the look into an empty queue.
func (t *turn) wants(k look) bool {
	if k.due {
		return true
	}
	for _, a := range t.arrivals {
		if a.handler == k.lane.handler.Name {
			return true
		}
	}
	for _, o := range t.outcomes {
		// A settled head may have freed the next of its ordering key; a failure may be due again at once.
		if o.attempt.lane == k.lane && (o.failure != nil || o.attempt.delivery.Message.OrderingKey != "") {
			return true
		}
	}
	return false
}

// arrive counts what was staged since the last turn, by this process or another.
func (t *turn) arrive(ctx context.Context, tx *Tx) error {
	stmt, err := tx.Stmt(ctx, selectArrivals)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, int64(t.cursor))
	if err != nil {
		return fmt.Errorf("find arrivals: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var a arrival
		var last DeliveryID
		if err := rows.Scan(&a.handler, &a.count, &last); err != nil {
			return fmt.Errorf("read arrivals: %w", err)
		}
		t.arrivals = append(t.arrivals, a)
		t.cursor = max(t.cursor, last)
	}
	return rows.Err()
}

// bury makes dead letters of claimed deliveries whose message must not be sent.
func (d *Dispatcher) bury(ctx context.Context, tx *Tx, l *lane, unfit []unfit) error {
	for _, u := range unfit {
		o := outcome{
			attempt: &attempt{lane: l, delivery: u.Delivery, started: tx.Now},
			failure: u.failure,
			ended:   tx.Now,
		}
		if err := d.settleFailure(ctx, tx, &o); err != nil {
			return err
		}
	}
	return nil
}

// putBack keeps the outcomes of a turn that did not commit for the next one.
func (d *Dispatcher) putBack(t *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcomes = append(t.outcomes, d.outcomes...)
	d.overdue = append(t.overdue, d.overdue...)
	d.arrived = true
}

// apply takes a committed turn into memory and starts the attempts it claimed.
func (d *Dispatcher) apply(t *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mono := time.Now()
	d.cursor, d.counted = t.cursor, mono
	d.toldTime(t)
	for _, a := range t.arrivals {
		d.tally(a.handler).pending += a.count
		if l := d.lanes[a.handler]; l != nil {
			l.dirty = true
		}
	}
	for _, o := range t.outcomes {
		d.settled(o)
		o.attempt.lane.busy--
		delete(d.running, o.attempt)
		if o.attempt.suspect {
			d.suspectRuns = false
		}
	}
	for _, o := range t.overdue {
		d.settled(o)
	}
	for _, l := range t.innocent {
		l.suspected = false
	}
	for _, c := range t.claims {
		n := int64(len(c.due.deliveries))
		tally := d.tally(c.lane.handler.Name)
		tally.pending -= n + int64(len(c.due.unfit))
		tally.processing += n
		tally.failed += int64(len(c.due.unfit))
		d.measureUnfit(c.lane.handler.Name, c.due.unfit)
		tally.attempts += n
		if c.suspect {
			d.suspectRuns = n > 0 && !c.lane.elsewhere()
		} else {
			c.lane.dirty, c.lane.next = false, c.next
		}
		c.lane.claimed(mono, int(n), c.probe)
		d.start(c)
	}
}
