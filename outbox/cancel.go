package outbox

import (
	"context"
	"fmt"
)

const cancelOne = `UPDATE outbox_deliveries SET state = 'dead-letter', completed_at = ?, failure_class = 'cancelled', last_error = ?, fence = ?,
  next_attempt_at = NULL, blocked = NULL, blocks = NULL, interrupted = 0 WHERE state = 'pending' AND id = ?`

// Cancel gives up a pending delivery: through a claim of the actor's it becomes a dead letter of the class cancelled, with the reason. It no
// longer holds back its ordering key. A delivery whose attempt runs is a *StateConflict: its outcome is the target's to say.
func (d *Dispatcher) Cancel(ctx context.Context, tx *Tx, by Operator, id DeliveryID) (Change, error) {
	return d.giveUp(ctx, tx, by, id, StatePending, func(o operated, fence Fence) error {
		d.follow(tx, map[HandlerName]shift{o.Handler: {pending: -1, failed: 1}}, []Change{o.ended(Cancelled)})
		return execExactly(ctx, tx, 1, cancelOne, micros(tx.Now), clip("cancelled by "+by.Actor+": "+by.Reason, maxErrorText), int64(fence), int64(id))
	}, Cancelled)
}

// The last error stays: it is the evidence of why the delivery was given up first.
const skipOne = `UPDATE outbox_deliveries SET completed_at = ?, failure_class = 'skipped', fence = ?, blocks = NULL
WHERE state = 'dead-letter' AND blocks = 1 AND id = ?`

// Skip passes over a dead letter that holds back its ordering key: through a claim of the actor's it gets the class skipped and leaves the
// order, so that the next delivery of the key is free. One that holds back nothing is ErrBlocksNothing.
func (d *Dispatcher) Skip(ctx context.Context, tx *Tx, by Operator, id DeliveryID) (Change, error) {
	return d.giveUp(ctx, tx, by, id, StateDeadLetter, func(o operated, fence Fence) error {
		if !o.blocks {
			return ErrBlocksNothing
		}
		d.follow(tx, map[HandlerName]shift{o.Handler: {}}, []Change{o.ended(Skipped)})
		return execExactly(ctx, tx, 1, skipOne, micros(tx.Now), int64(fence), int64(id))
	}, Skipped)
}

func (o operated) ended(class Class) Change {
	c := o.Change
	c.State, c.Class = StateDeadLetter, class
	return c
}

// giveUp is what cancel and skip have in common.
func (d *Dispatcher) giveUp(ctx context.Context, tx *Tx, by Operator, id DeliveryID, from StateName, settle func(operated, Fence) error, class Class) (Change, error) {
	if err := by.validate(); err != nil {
		return Change{}, fmt.Errorf("end delivery as %s: %w", class, err)
	}
	o, err := findOperated(ctx, tx, by.Tenant, id, from)
	if err != nil {
		return o.Change, fmt.Errorf("end delivery as %s: %w", class, err)
	}
	fence, err := claimFor(ctx, tx)
	if err != nil {
		return Change{}, fmt.Errorf("end delivery %d as %s: %w", id, class, err)
	}
	if err := settle(o, fence); err != nil {
		return o.Change, fmt.Errorf("end delivery %d as %s: %w", id, class, err)
	}
	if o.blocks {
		if err := unblockKey(ctx, tx, o.Handler, o.Tenant, o.key); err != nil {
			return Change{}, err
		}
	}
	return o.ended(class), nil
}
