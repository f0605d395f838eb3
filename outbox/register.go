package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnknownHandler: no handler of this name is registered.
var ErrUnknownHandler = errors.New("no handler of this name is registered")

// Register adds a handler, or replaces the registration of one. Its routes hold for what is staged from then on.
func (d *Dispatcher) Register(ctx context.Context, h Handler) error {
	h, err := h.validate()
	if err != nil {
		return err
	}
	d.mu.Lock()
	started := d.started
	d.mu.Unlock()
	held := ""
	if started {
		err := d.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
			holds, err := readHolds(ctx, tx)
			if err != nil {
				return err
			}
			held = holds[h.Name]
			return reconcileRoutes(ctx, tx, h)
		})
		if err != nil {
			return fmt.Errorf("register handler %s: %w", h.Name, err)
		}
	}
	d.mu.Lock()
	l := &lane{handler: h, leaseFor: h.Timeout + d.config.LeaseGrace, held: held, dirty: true}
	// What runs keeps its slot in the lane that started it.
	d.lanes[h.Name] = l
	d.suspected = d.suspected || started
	d.mu.Unlock()
	d.signal()
	return nil
}

// cancelBatch is how many deliveries one command cancels, so that it stays short.
const cancelBatch = 500

// A cancelled delivery passes through a claim of the actor's, as every change of a delivery does.
const cancelPending = `UPDATE outbox_deliveries SET state = 'dead-letter', completed_at = ?, failure_class = 'cancelled', last_error = ?, fence = ?,
  next_attempt_at = NULL, blocked = NULL, blocks = NULL, interrupted = 0
WHERE id IN (SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ? AND state = 'pending' LIMIT ?)`

// Remove takes a handler and its routes away and settles what is pending for it as cancelled, with the reason. Attempts that run are
// finished and settled as usual. It returns how many deliveries were cancelled.
func (d *Dispatcher) Remove(ctx context.Context, name HandlerName, reason string) (cancelled int64, err error) {
	d.mu.Lock()
	delete(d.lanes, name)
	d.mu.Unlock()
	for {
		var n int64
		err := d.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
			if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_routes WHERE handler = ?`, string(name)); err != nil {
				return err
			}
			if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_lanes WHERE handler = ?`, string(name)); err != nil {
				return err
			}
			if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_backfills WHERE handler = ?`, string(name)); err != nil {
				return err
			}
			stmt, err := tx.Stmt(ctx, raiseFence)
			if err != nil {
				return err
			}
			var fence int64
			if err := stmt.QueryRowContext(ctx).Scan(&fence); err != nil {
				return err
			}
			n, err = execCount(ctx, tx, cancelPending, micros(tx.Now), clip(reason, maxErrorText), fence, string(name), cancelBatch)
			return err
		})
		if err != nil {
			return cancelled, fmt.Errorf("remove handler %s: %w", name, err)
		}
		cancelled += n
		d.mu.Lock()
		t := d.tally(name)
		t.pending, t.failed = t.pending-n, t.failed+n
		d.mu.Unlock()
		if n < cancelBatch {
			return cancelled, nil
		}
	}
}

// Hold stops a lane: its deliveries stay pending and visible, running attempts finish. The hold outlives the process.
func (d *Dispatcher) Hold(ctx context.Context, name HandlerName, reason string) error {
	return d.setHold(ctx, name, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_lanes(handler, held_at, reason) VALUES (?, ?, ?)
			ON CONFLICT (handler) DO UPDATE SET reason = excluded.reason`, string(name), micros(tx.Now), reason)
		return err
	}, &reason)
}

// Resume lets a held lane flow again; one whose backfill is not all in, as soon as it is.
func (d *Dispatcher) Resume(ctx context.Context, name HandlerName) error {
	left := ""
	return d.setHold(ctx, name, func(ctx context.Context, tx *Tx) (err error) {
		left, err = ReleaseLane(ctx, tx, name)
		return err
	}, &left)
}

// ReleaseLane ends a stored hold, in a transaction that changes more than that; Resume has the running lane follow it. It returns the hold
// that is left: a backfill keeps its own.
func ReleaseLane(ctx context.Context, tx *Tx, name HandlerName) (left string, err error) {
	if _, err := execCount(ctx, tx, `DELETE FROM outbox_lanes WHERE handler = ?`, string(name)); err != nil {
		return "", fmt.Errorf("release %s: %w", name, err)
	}
	n, err := execCount(ctx, tx, holdWhileBackfilled, micros(tx.Now), BackfillHold, string(name))
	if err != nil {
		return "", fmt.Errorf("release %s: %w", name, err)
	}
	if n == 1 {
		left = BackfillHold
	}
	return left, nil
}

const holdWhileBackfilled = `INSERT INTO outbox_lanes(handler, held_at, reason) SELECT handler, ?, ? FROM outbox_backfills WHERE handler = ? AND finished_at IS NULL`

func (d *Dispatcher) setHold(ctx context.Context, name HandlerName, change Command, reason *string) error {
	d.mu.Lock()
	l := d.lanes[name]
	d.mu.Unlock()
	if l == nil {
		return fmt.Errorf("hold %s: %w", name, ErrUnknownHandler)
	}
	if err := d.config.Writer.Do(ctx, change); err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	d.mu.Lock()
	l.held, l.dirty, l.next = *reason, true, time.Time{}
	d.suspected = true
	d.mu.Unlock()
	d.signal()
	return nil
}

func readHolds(ctx context.Context, tx *Tx) (map[HandlerName]string, error) {
	rows, err := tx.Tx.Tx.QueryContext(ctx, `SELECT handler, reason FROM outbox_lanes`)
	if err != nil {
		return nil, fmt.Errorf("read holds: %w", err)
	}
	defer func() { _ = rows.Close() }()
	held := map[HandlerName]string{}
	for rows.Next() {
		var name HandlerName
		var reason string
		if err := rows.Scan(&name, &reason); err != nil {
			return nil, fmt.Errorf("read holds: %w", err)
		}
		held[name] = reason
	}
	return held, rows.Err()
}
