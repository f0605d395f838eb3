package outbox

import (
	"context"
	"errors"
	"fmt"
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
	l := newLane(h, d.config)
	l.held, l.suspected = held, started
	// What runs keeps its slot in the lane that started it.
	d.lanes[h.Name] = l
	d.mu.Unlock()
	d.signal()
	if started && h.SkipDeadLetters {
		if err := d.passDead(ctx, h.Name); err != nil {
			return fmt.Errorf("register handler %s: %w", h.Name, err)
		}
	}
	return nil
}

// cancelBatch is how many deliveries one command cancels, so that it stays short.
const cancelBatch = 500

// A cancelled delivery passes through a claim of the actor's, as every change of a delivery does.
const cancelPending = `UPDATE outbox_deliveries SET state = 'dead-letter', completed_at = ?, failure_class = 'cancelled', last_error = ?, fence = ?,
  next_attempt_at = NULL, blocked = NULL, blocks = NULL, interrupted = 0
WHERE id IN (SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ? AND state = 'pending' LIMIT ?)`

// Remove takes a handler and its routes away and settles what is pending for it as cancelled, with the reason. Attempts that run are finished;
// those that fail are cancelled too. Its dead letters hold back nothing any more, should a handler of the same name come. It returns how many
// deliveries were cancelled.
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
			return cancelled, d.passDead(ctx, name)
		}
	}
}
