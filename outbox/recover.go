package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
)

const selectAbandoned = `SELECT id, handler, tenant, coalesce(ordering_key, ''), coalesce(blocks, 0), attempt, charged, interrupted, fence
FROM outbox_deliveries INDEXED BY outbox_deliveries_leased WHERE state = 'processing'`

const returnAbandoned = `UPDATE outbox_deliveries SET state = 'pending', next_attempt_at = ?, blocked = 0, charged = ?, last_error = ?,
  failure_class = 'interrupted', lease_owner = NULL, lease_expires_at = NULL, interrupted = ? WHERE state = 'processing' AND id = ?`

const buryAbandoned = `UPDATE outbox_deliveries SET state = 'dead-letter', completed_at = ?, last_error = ?,
  failure_class = 'interrupted', blocks = ?, lease_owner = NULL, lease_expires_at = NULL, interrupted = 0 WHERE state = 'processing' AND id = ?`

// Everything open is pending once the abandoned deliveries are returned, so the indexes answer alone.
const selectCounts = `SELECT handler, count(*), 0 FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL GROUP BY handler
UNION ALL
SELECT handler, 0, count(*) FROM outbox_deliveries INDEXED BY outbox_deliveries_dead WHERE state = 'dead-letter' GROUP BY handler`

// recover returns what an earlier boot left in flight to eligible work (P17), reads the holds, reconciles the routes of the registered
// handlers, and counts the backlog once; from then on the counts are kept in memory.
func (d *Dispatcher) recover(ctx context.Context, handlers []Handler) error {
	var tallies map[HandlerName]*tally
	var held map[HandlerName]string
	var cursor DeliveryID
	var suspected bool
	outages := map[HandlerName]time.Time{}
	err := d.config.Writer.First(ctx, func(ctx context.Context, tx *Tx) (err error) {
		for _, h := range handlers {
			if err := reconcileRoutes(ctx, tx, h); err != nil {
				return err
			}
			if err := recallAside(ctx, tx, h); err != nil {
				return err
			}
			if outages[h.Name], err = d.outageOf(ctx, tx, h.Name); err != nil {
				return err
			}
		}
		if err = excuse(ctx, tx); err != nil {
			return err
		}
		if err = d.returnAbandoned(ctx, tx); err != nil {
			return err
		}
		if held, err = readHolds(ctx, tx); err != nil {
			return err
		}
		if tallies, err = countBacklog(ctx, tx); err != nil {
			return err
		}
		if err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM outbox_deliveries INDEXED BY outbox_deliveries_interrupted WHERE interrupted = 1)`).Scan(&suspected); err != nil {
			return fmt.Errorf("find interrupted deliveries: %w", err)
		}
		if err = tx.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM outbox_deliveries`).Scan(&cursor); err != nil {
			return fmt.Errorf("find latest delivery: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tallies, d.cursor, d.arrived = tallies, cursor, true
	for name, l := range d.lanes {
		l.held, l.dirty, l.suspected = held[name], true, suspected
		if since := outages[name]; !since.IsZero() {
			l.breaker.trip(time.Now().Add(-max(0, d.config.now().Sub(since))))
		}
	}
	return nil
}

// outageSample is how many of a lane's oldest open deliveries tell whether its target could be reached when the process ended.
const outageSample = 100

const selectOutage = `SELECT count(unreachable_at), coalesce(min(unreachable_at), 0) FROM (SELECT unreachable_at FROM outbox_deliveries INDEXED BY outbox_deliveries_open
WHERE completed_at IS NULL AND handler = ? ORDER BY id LIMIT ?)`

// outageOf is since when a lane's target cannot be reached; zero: it can, as far as is known. When the last that was heard of it, by as many
// deliveries as open the breaker, is that it cannot, the lane begins with a probe instead of all that it may attempt at once.
func (d *Dispatcher) outageOf(ctx context.Context, tx *Tx, name HandlerName) (time.Time, error) {
	stmt, err := tx.Stmt(ctx, selectOutage)
	if err != nil {
		return time.Time{}, err
	}
	var n int
	var since int64
	if err := stmt.QueryRowContext(ctx, string(name), outageSample).Scan(&n, &since); err != nil {
		return time.Time{}, fmt.Errorf("find outage of %s: %w", name, err)
	}
	if n < d.config.Breaker.OpensAfter {
		return time.Time{}, nil
	}
	return fromMicros(since), nil
}

// Prepare reconciles the routes, reads the holds and counts the backlog, as Start does, but delivers nothing: for a program that only looks
// and changes. What it stages reaches the handlers when they are started.
func (d *Dispatcher) Prepare(ctx context.Context) error {
	var tallies map[HandlerName]*tally
	var held map[HandlerName]string
	d.mu.Lock()
	handlers := make([]Handler, 0, len(d.lanes))
	for _, l := range d.lanes {
		handlers = append(handlers, l.handler)
	}
	d.mu.Unlock()
	err := d.config.Writer.First(ctx, func(ctx context.Context, tx *Tx) (err error) {
		for _, h := range handlers {
			if err := reconcileRoutes(ctx, tx, h); err != nil {
				return err
			}
		}
		if held, err = readHolds(ctx, tx); err != nil {
			return err
		}
		tallies, err = countBacklog(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("prepare dispatcher: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tallies = tallies
	for name, l := range d.lanes {
		l.held = held[name]
	}
	return nil
}

// returnAbandoned returns the deliveries that were in flight when an earlier boot ended. The crash has cost each of them the attempt, unless
// one among them was being tried alone because it had been in flight at an earlier crash: then that one is blamed, and the others are not.
func (d *Dispatcher) returnAbandoned(ctx context.Context, tx *Tx) error {
	abandoned, err := readAbandoned(ctx, tx)
	if err != nil {
		return err
	}
	blamed := false
	for _, dl := range abandoned {
		blamed = blamed || dl.interrupted
	}
	for _, dl := range abandoned {
		a := &attempt{delivery: dl, started: tx.Now}
		o := outcome{attempt: a, failure: &Failure{Class: Interrupted, Err: errAbandoned}, ended: tx.Now}
		if err := recordAttempt(ctx, tx, &o, errAbandoned.Error()); err != nil {
			return err
		}
		charged, suspect := dl.Charged, 1
		if blamed && !dl.interrupted {
			charged, suspect = max(0, charged-1), 0
		}
		if mutant.CrashFree {
			charged = max(0, charged-1)
		}
		if charged >= d.config.Retry.MaxAttempts {
			err = d.buryAbandoned(ctx, tx, dl)
		} else {
			_, err = execCount(ctx, tx, returnAbandoned, micros(tx.Now), charged, errAbandoned.Error(), suspect, int64(dl.ID))
		}
		if err != nil {
			return fmt.Errorf("return delivery %d: %w", dl.ID, err)
		}
	}
	return nil
}

// buryAbandoned makes a dead letter of a delivery whose last charged attempt ended with the process.
func (d *Dispatcher) buryAbandoned(ctx context.Context, tx *Tx, dl Delivery) error {
	var blocks any
	// A handler that this program does not have keeps its order: another build, or the next, may have it.
	if _, skips := d.registered(dl.Handler); dl.blocks && !skips {
		blocks = 1
	}
	if _, err := execCount(ctx, tx, buryAbandoned, micros(tx.Now), errAbandoned.Error(), blocks, int64(dl.ID)); err != nil || blocks != nil {
		return err
	}
	return unblock(ctx, tx, dl)
}

func readAbandoned(ctx context.Context, tx *Tx) ([]Delivery, error) {
	rows, err := tx.QueryContext(ctx, selectAbandoned)
	if err != nil {
		return nil, fmt.Errorf("find abandoned deliveries: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var abandoned []Delivery
	for rows.Next() {
		var dl Delivery
		if err := rows.Scan(&dl.ID, &dl.Handler, &dl.Message.Tenant, &dl.Message.OrderingKey, &dl.blocks, &dl.Attempt, &dl.Charged, &dl.interrupted, &dl.Fence); err != nil {
			return nil, fmt.Errorf("read abandoned delivery: %w", err)
		}
		abandoned = append(abandoned, dl)
	}
	return abandoned, rows.Err()
}

func countBacklog(ctx context.Context, tx *Tx) (map[HandlerName]*tally, error) {
	rows, err := tx.QueryContext(ctx, selectCounts)
	if err != nil {
		return nil, fmt.Errorf("count backlog: %w", err)
	}
	defer func() { _ = rows.Close() }()
	tallies := map[HandlerName]*tally{}
	for rows.Next() {
		var name HandlerName
		var pending, failed int64
		if err := rows.Scan(&name, &pending, &failed); err != nil {
			return nil, fmt.Errorf("count backlog: %w", err)
		}
		if tallies[name] == nil {
			tallies[name] = &tally{}
		}
		tallies[name].pending += pending
		tallies[name].failed += failed
	}
	return tallies, rows.Err()
}
