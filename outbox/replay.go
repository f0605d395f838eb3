package outbox

import (
	"context"
	"fmt"
	"strconv"

	"github.com/posthorn/posthorn/outbox/mutant"
)

// ReplayBatch is the most dead letters that one command replays, so that it stays short.
const ReplayBatch = 500

// The audit row comes first: it keeps the failure that the replay answers (P34).
const insertReplays = `INSERT INTO outbox_replays(delivery, message, tenant, handler, actor, reason, replayed_at, failure)
SELECT d.id, m.id, d.tenant, d.handler, ?, ?, ?, d.failure_class || coalesce(': ' || d.last_error, '')
FROM json_each(?) j CROSS JOIN outbox_deliveries d ON d.id = j.value CROSS JOIN outbox_messages m ON m.seq = d.seq`

// The message, its id and its bytes stay as they are (P33). The attempts go on counting, those that the bound applies to begin anew, and so
// does the horizon: otherwise the first failure of an old message would be its last. One that holds back its ordering key returns
// to its place there, which is the head; one that was passed over stays outside the order.
const updateReplayed = `UPDATE outbox_deliveries SET state = 'pending', next_attempt_at = ?1, charged = 0, completed_at = NULL, unreachable_at = NULL,
  waited = 0, blocked = blocks IS NOT NULL AND EXISTS (SELECT 1 FROM outbox_deliveries p WHERE p.blocks = 1 AND p.handler = outbox_deliveries.handler
    AND p.tenant = outbox_deliveries.tenant AND p.ordering_key = outbox_deliveries.ordering_key AND p.seq < outbox_deliveries.seq)
WHERE state = 'dead-letter' AND id IN (SELECT value FROM json_each(?2))`

// Replay returns a dead letter to pending, with its audit row in the same transaction (P34). One that dies again can be replayed again;
// anything but a dead letter is a *StateConflict, and a handler that this program does not have is ErrUnknownHandler.
func (d *Dispatcher) Replay(ctx context.Context, tx *Tx, by Operator, id DeliveryID) (Change, error) {
	if err := by.validate(); err != nil {
		return Change{}, fmt.Errorf("replay delivery: %w", err)
	}
	o, err := findOperated(ctx, tx, by.Tenant, id, StateDeadLetter)
	if err != nil {
		return o.Change, fmt.Errorf("replay delivery: %w", err)
	}
	if !d.knows(o.Handler) {
		return o.Change, fmt.Errorf("replay delivery %d for %s: %w", id, o.Handler, ErrUnknownHandler)
	}
	changes, err := d.replay(ctx, tx, by, []operated{o})
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

const selectUnchanged = `SELECT d.id FROM json_each(?) j CROSS JOIN outbox_deliveries d ON d.id = json_extract(j.value, '$[0]')
WHERE d.state = 'dead-letter' AND d.fence = json_extract(j.value, '$[1]') AND d.tenant = ?`

// ReplayFound replays what FindDeadLetters found, at most ReplayBatch at once, each with its audit row. What has changed since, or has lost
// its handler, is left alone. It returns what it replayed.
func (d *Dispatcher) ReplayFound(ctx context.Context, tx *Tx, by Operator, found []DeadLetterRef) ([]Change, error) {
	if err := by.validate(); err != nil {
		return nil, fmt.Errorf("replay dead letters: %w", err)
	}
	if len(found) > ReplayBatch {
		return nil, fmt.Errorf("replay dead letters: %d at once, at most %d", len(found), ReplayBatch)
	}
	ids, err := deliveryIDs(ctx, tx, selectUnchanged, refList(found), string(by.Tenant))
	if err != nil {
		return nil, fmt.Errorf("replay dead letters: %w", err)
	}
	all, err := readOperated(ctx, tx, by.Tenant, ids)
	if err != nil {
		return nil, fmt.Errorf("replay dead letters: %w", err)
	}
	known := all[:0]
	for _, o := range all {
		if d.knows(o.Handler) {
			known = append(known, o)
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	return d.replay(ctx, tx, by, known)
}

func (d *Dispatcher) replay(ctx context.Context, tx *Tx, by Operator, letters []operated) ([]Change, error) {
	ids := make([]int64, len(letters))
	changes := make([]Change, len(letters))
	shifts := map[HandlerName]shift{}
	for i, o := range letters {
		ids[i] = int64(o.Delivery)
		changes[i] = o.Change
		changes[i].State = StatePending
		s := shifts[o.Handler]
		shifts[o.Handler] = shift{pending: s.pending + 1, failed: s.failed - 1}
	}
	now, list := micros(tx.Now), intList(ids)
	if mutant.AuditOutside {
		tx.AfterCommit(func() {
			_ = d.config.Writer.Do(context.WithoutCancel(ctx), func(ctx context.Context, tx *Tx) error {
				return execExactly(ctx, tx, len(ids), insertReplays, by.Actor, by.Reason, now, list)
			})
		})
	} else if err := execExactly(ctx, tx, len(ids), insertReplays, by.Actor, by.Reason, now, list); err != nil {
		return nil, fmt.Errorf("audit replay: %w", err)
	}
	if err := execExactly(ctx, tx, len(ids), updateReplayed, now, list); err != nil {
		return nil, fmt.Errorf("replay dead letters: %w", err)
	}
	d.follow(tx, shifts, changes)
	return changes, nil
}

func refList(found []DeadLetterRef) string {
	b := []byte{'['}
	for i, f := range found {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(f.ID), 10)
		b = strconv.AppendInt(append(b, ','), int64(f.Fence), 10)
		b = append(b, ']')
	}
	return string(append(b, ']'))
}
