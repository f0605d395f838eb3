package outbox

import (
	"context"
	"fmt"
)

// unblockNext lets the next delivery of an ordering key into the due index. It has waited for nothing but its predecessor, so it is due,
// even if the clock has gone back since it was staged.
const unblockNext = `UPDATE outbox_deliveries SET blocked = 0, next_attempt_at = min(next_attempt_at, ?)
WHERE state = 'pending' AND blocked = 1 AND id = (SELECT id FROM outbox_deliveries
  WHERE blocks = 1 AND handler = ? AND tenant = ? AND ordering_key = ? ORDER BY seq LIMIT 1)`

func unblock(ctx context.Context, tx *Tx, dl Delivery) error {
	if dl.Message.OrderingKey == "" {
		return nil
	}
	return unblockKey(ctx, tx, dl.Handler, dl.Message.Tenant, dl.Message.OrderingKey)
}

func unblockKey(ctx context.Context, tx *Tx, handler HandlerName, tenant TenantID, key string) error {
	if _, err := execCount(ctx, tx, unblockNext, micros(tx.Now), string(handler), string(tenant), key); err != nil {
		return fmt.Errorf("free ordering key: %w", err)
	}
	return nil
}

// registered says whether a handler is there, and whether the later messages of an ordering key pass its dead letters. It is asked inside the
// command that settles: Register and Remove change the registration first, and their own commands find what was settled before.
func (d *Dispatcher) registered(name HandlerName) (known, skips bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[name]
	return l != nil, l != nil && l.handler.SkipDeadLetters
}

// passBatch is how many dead letters one command passes, so that it stays short.
const passBatch = 500

const selectBlockingDead = `SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_blocking_dead
WHERE state = 'dead-letter' AND blocks = 1 AND handler = ? LIMIT ?`

// As an operator's skip does, it takes a claim and leaves the order; unlike it, it says nothing against the message, so the class stays.
const passOne = `UPDATE outbox_deliveries SET fence = ?, blocks = NULL WHERE state = 'dead-letter' AND blocks = 1 AND id = ?
RETURNING tenant, ordering_key`

// passDead has the dead letters of a handler hold back nothing any more, now that it skips them or is removed. What has left the order
// does not come back to it when the handler blocks again; only what dies from then on holds back its key.
func (d *Dispatcher) passDead(ctx context.Context, name HandlerName) error {
	for {
		var passed int
		err := d.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
			ids, err := deliveryIDs(ctx, tx, selectBlockingDead, string(name), passBatch)
			if passed = len(ids); err != nil || passed == 0 {
				return err
			}
			fence, err := claimFor(ctx, tx)
			if err != nil {
				return err
			}
			stmt, err := tx.Stmt(ctx, passOne)
			if err != nil {
				return err
			}
			for _, id := range ids {
				var tenant TenantID
				var key string
				if err := stmt.QueryRowContext(ctx, int64(fence), id).Scan(&tenant, &key); err != nil {
					return err
				}
				if err := unblockKey(ctx, tx, name, tenant, key); err != nil {
					return err
				}
			}
			d.follow(tx, map[HandlerName]shift{name: {}}, nil)
			return nil
		})
		if err != nil {
			return fmt.Errorf("pass dead letters of %s: %w", name, err)
		}
		if passed < passBatch {
			return nil
		}
	}
}
