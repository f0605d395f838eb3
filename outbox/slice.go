package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const (
	// backfillMessages is how many messages one command of a backfill gives, backfillWindow how many it looks at: those that occurred at
	// another time, or that no route wants, are passed faster.
	backfillMessages = 250
	backfillWindow   = 2000
)

// sliceResult is what one slice did: all that was left, or nothing yet, since attempts of the lane still run.
type sliceResult struct{ finished, busy bool }

const laneIsBusy = `SELECT EXISTS (SELECT 1 FROM outbox_deliveries INDEXED BY outbox_deliveries_leased WHERE state = 'processing' AND handler = ?)`

const selectSliceEnd = `SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM outbox_messages WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?)`

// Steps and effects have exactly one handler each, which got them when they were staged.
const selectSlice = `SELECT m.seq FROM outbox_messages m
WHERE m.seq > :after AND m.seq <= :end AND m.kind = 'integration-event'
  AND (:from IS NULL OR m.occurred_at >= :from) AND (:to IS NULL OR m.occurred_at < :to)
  AND EXISTS (SELECT 1 FROM outbox_routes r WHERE r.handler = :handler AND r.kind = m.kind AND r.tenant IN ('*', m.tenant) AND m.type GLOB r.pattern)
  AND NOT EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = m.seq AND d.handler = :handler)
ORDER BY m.seq LIMIT :limit`

// A delivery that was kept for want of a route moves to the handler that wants it now: through a claim, which raises the fence, and back to
// pending. It is not settled as skipped, since nobody passed it over: as a dead letter it would make its message look given up, and be
// counted and alarmed for, long after it was delivered.
const moveUnrouted = `UPDATE outbox_deliveries SET handler = ?1, fence = ?2,
  next_attempt_at = coalesce((SELECT deliver_at FROM outbox_messages m WHERE m.seq = ?4), ?3),
  ordering_key = (SELECT ordering_key FROM outbox_messages m WHERE m.seq = ?4),
  blocks = (SELECT CASE WHEN ordering_key IS NOT NULL THEN 1 END FROM outbox_messages m WHERE m.seq = ?4)
WHERE seq = ?4 AND handler = 'unrouted' AND state = 'pending'`

const insertBackfilled = `INSERT INTO outbox_deliveries(seq, handler, tenant, ordering_key, next_attempt_at, blocked, blocks, created_at)
SELECT seq, ?1, tenant, ordering_key, coalesce(deliver_at, ?2), 0, CASE WHEN ordering_key IS NOT NULL THEN 1 END, ?2
FROM outbox_messages WHERE seq = ?3`

// The order of a key is that of the commits, wherever a delivery came in: only its first one may be claimed. A new first one takes the place
// of the one behind it.
const (
	placeInOrder = `UPDATE outbox_deliveries SET blocked = EXISTS (SELECT 1 FROM outbox_deliveries p WHERE p.blocks = 1
  AND p.handler = outbox_deliveries.handler AND p.tenant = outbox_deliveries.tenant AND p.ordering_key = outbox_deliveries.ordering_key
  AND p.seq < outbox_deliveries.seq)
WHERE seq = ?1 AND handler = ?2 AND state = 'pending' AND blocks = 1`
	takeFirstPlace = `UPDATE outbox_deliveries SET blocked = 1 WHERE state = 'pending' AND blocked = 0 AND id = (SELECT n.id
  FROM outbox_deliveries d JOIN outbox_deliveries n ON n.blocks = 1 AND n.handler = d.handler AND n.tenant = d.tenant
    AND n.ordering_key = d.ordering_key AND n.seq > d.seq
  WHERE d.seq = ?1 AND d.handler = ?2 AND d.blocks = 1 AND d.blocked = 0 ORDER BY n.seq LIMIT 1)`
)

const advanceBackfill = `UPDATE outbox_backfills SET next_seq = ?, added = added + ? WHERE handler = ?`

const finishBackfill = `UPDATE outbox_backfills SET finished_at = ? WHERE handler = ?`

const releaseBackfill = `DELETE FROM outbox_lanes WHERE handler = ? AND reason = ?`

// backfillSlice gives a handler the next messages of its past. The lane is held, so nothing overtakes what comes in.
func (d *Dispatcher) backfillSlice(ctx context.Context, tx *Tx, handler HandlerName) (sliceResult, error) {
	b, err := scanBackfill(tx.QueryRowContext(ctx, selectBackfill+` WHERE finished_at IS NULL AND handler = ?`, string(handler)))
	if errors.Is(err, sql.ErrNoRows) {
		return sliceResult{finished: true}, nil // its destination was deleted, or it has just ended
	}
	if err != nil {
		return sliceResult{}, err
	}
	var busy bool
	var end int64
	if err := tx.QueryRowContext(ctx, laneIsBusy, string(handler)).Scan(&busy); err != nil || busy {
		return sliceResult{busy: busy}, err
	}
	if err := tx.QueryRowContext(ctx, selectSliceEnd, b.Next, b.Last, backfillWindow).Scan(&end); err != nil {
		return sliceResult{}, err
	}
	if end == 0 {
		return sliceResult{finished: true}, d.endBackfill(ctx, tx, handler)
	}
	seqs, err := deliveryIDs(ctx, tx, selectSlice, sql.Named("after", b.Next), sql.Named("end", end), sql.Named("handler", string(handler)),
		sql.Named("from", optionalTime(b.From)), sql.Named("to", optionalTime(b.To)), sql.Named("limit", backfillMessages))
	if err != nil {
		return sliceResult{}, err
	}
	if len(seqs) == backfillMessages {
		end = seqs[len(seqs)-1] // there may be more in the window
	}
	moved, err := give(ctx, tx, handler, seqs)
	if err != nil {
		return sliceResult{}, err
	}
	if moved > 0 {
		d.follow(tx, map[HandlerName]shift{Unrouted: {pending: -moved}, handler: {pending: moved}}, nil)
	}
	_, err = execCount(ctx, tx, advanceBackfill, end, len(seqs), string(handler))
	return sliceResult{}, err
}

// give makes the deliveries of one slice, in commit order, and says how many were moved from unrouted.
func give(ctx context.Context, tx *Tx, handler HandlerName, seqs []int64) (moved int64, err error) {
	if len(seqs) == 0 {
		return 0, nil
	}
	fence, err := claimFor(ctx, tx)
	if err != nil {
		return 0, err
	}
	now := micros(tx.Now)
	for _, seq := range seqs {
		n, err := execCount(ctx, tx, moveUnrouted, string(handler), int64(fence), now, seq)
		if err == nil && n == 0 {
			_, err = execCount(ctx, tx, insertBackfilled, string(handler), now, seq)
		}
		for _, order := range []string{placeInOrder, takeFirstPlace} {
			if err == nil {
				_, err = execCount(ctx, tx, order, seq, string(handler))
			}
		}
		if err != nil {
			return 0, fmt.Errorf("give message %d: %w", seq, err)
		}
		moved += n
	}
	return moved, nil
}

// endBackfill frees the lane, unless it is held for a reason of its own.
func (d *Dispatcher) endBackfill(ctx context.Context, tx *Tx, handler HandlerName) error {
	if _, err := execCount(ctx, tx, finishBackfill, micros(tx.Now), string(handler)); err != nil {
		return err
	}
	freed, err := execCount(ctx, tx, releaseBackfill, string(handler), BackfillHold)
	if err != nil {
		return err
	}
	tx.noRide = true
	tx.AfterCommit(func() {
		d.mu.Lock()
		if l := d.lanes[handler]; l != nil && freed == 1 && l.held == BackfillHold {
			l.held = ""
		}
		d.stirred[handler] = true
		d.mu.Unlock()
		d.signal()
	})
	return nil
}
