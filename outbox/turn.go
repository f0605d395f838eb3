package outbox

import (
	"context"
	"fmt"
	"time"
)

const selectArrivals = `SELECT handler, count(*), max(id) FROM outbox_deliveries WHERE id > ? GROUP BY handler`

const selectSuspects = `SELECT ` + claimColumns + `
FROM outbox_deliveries d INDEXED BY outbox_deliveries_interrupted JOIN outbox_messages m ON m.seq = d.seq
WHERE d.interrupted = 1 AND d.state = 'pending' AND d.blocked = 0 AND d.handler = ? ORDER BY d.id LIMIT 1`

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
	suspects []*lane // lanes that may try a delivery that was in flight when the process ended
	all      bool    // suspects holds every lane that flows

	// What the transaction found; begun afresh if the writer runs it again.
	cursor   DeliveryID
	arrivals []arrival
	staged   []Change // the arrivals one by one, when somebody observes
	claims   []claim
}

// look is a lane that has room, as it was when the turn was planned.
type look struct {
	lane  *lane
	limit int
	due   bool // something is known to be due
}

// claim is what one lane got.
type claim struct {
	lane    *lane
	due     due
	next    time.Time
	suspect bool
}

// plan takes what there is to do. It returns nil when there is nothing.
func (d *Dispatcher) plan() *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.now()
	for name := range d.stirred {
		if l := d.lanes[name]; l != nil {
			l.dirty = true
		}
	}
	clear(d.stirred)
	t := &turn{outcomes: d.outcomes, overdue: d.overdue, all: true}
	d.outcomes, d.overdue = nil, nil
	// A slot is free as soon as its handler returned, and its outcome is settled before the next claim of the same turn.
	returned := map[*lane]int{}
	for _, o := range t.outcomes {
		returned[o.attempt.lane]++
	}
	for _, l := range d.lanes {
		free := l.free() + returned[l]
		if d.stopping || l.held != "" {
			continue
		}
		if free <= 0 {
			t.all = false
			continue
		}
		due := l.dirty || (!l.next.IsZero() && !l.next.After(now))
		if due || d.arrived || returned[l] > 0 {
			t.looks = append(t.looks, look{lane: l, limit: min(free, d.config.ClaimBatch), due: due})
		}
		if d.suspected && !d.suspectRuns {
			t.suspects = append(t.suspects, l)
		}
	}
	// What arrived is counted although no lane may take it now.
	if !d.arrived && len(t.outcomes) == 0 && len(t.overdue) == 0 && len(t.looks) == 0 && len(t.suspects) == 0 {
		return nil
	}
	d.arrived = false
	return t
}

// run is the turn's transaction.
func (t *turn) run(d *Dispatcher) Command {
	return func(ctx context.Context, tx *Tx) error {
		t.cursor, t.arrivals, t.staged, t.claims = d.cursor, nil, nil, nil
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
			found, next, err := claimDue(ctx, tx, l, d.owner, limit)
			if err != nil {
				return err
			}
			if err := d.buryCorrupt(ctx, tx, l, found.corrupt); err != nil {
				return err
			}
			t.claims = append(t.claims, claim{lane: l, due: found, next: next})
		}
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

// claimSuspect takes one delivery that was in flight when the process ended. Only one of them runs at a time, so that a message that
// kills the process is charged alone.
func (t *turn) claimSuspect(ctx context.Context, tx *Tx, d *Dispatcher) error {
	for _, l := range t.suspects {
		var found due
		if _, err := selectDeliveries(ctx, tx, &found, l.handler.Name, selectSuspects, string(l.handler.Name)); err != nil {
			return err
		}
		if len(found.deliveries)+len(found.corrupt) == 0 {
			continue
		}
		if err := lease(ctx, tx, &found, l, d.owner); err != nil {
			return err
		}
		if err := d.buryCorrupt(ctx, tx, l, found.corrupt); err != nil {
			return err
		}
		t.claims = append(t.claims, claim{lane: l, due: found, suspect: true})
		return nil
	}
	return nil
}

// buryCorrupt makes dead letters of claimed deliveries whose payload is not what was staged.
func (d *Dispatcher) buryCorrupt(ctx context.Context, tx *Tx, l *lane, corrupt []Delivery) error {
	for _, dl := range corrupt {
		o := outcome{
			attempt: &attempt{lane: l, delivery: dl, started: tx.Now},
			failure: &Failure{Class: Corrupt, Err: errHashMismatch},
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
	d.cursor = t.cursor
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
	if t.all && len(t.suspects) > 0 {
		d.suspected = false // unless one is found, below
	}
	for _, c := range t.claims {
		n := int64(len(c.due.deliveries))
		tally := d.tally(c.lane.handler.Name)
		tally.pending -= n + int64(len(c.due.corrupt))
		tally.processing += n
		tally.failed += int64(len(c.due.corrupt))
		tally.attempts += n
		if c.suspect {
			d.suspected, d.suspectRuns = true, n > 0
		} else {
			c.lane.dirty, c.lane.next = false, c.next
		}
		d.start(c.lane, c.due.deliveries, c.suspect)
	}
}
