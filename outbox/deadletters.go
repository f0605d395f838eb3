package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// DeadLetters says which dead letters are meant. Tenant is required; the zero value of every other field lets everything through. What
// Filter has too means the same here, so that a bulk replay does what the list beside it shows.
type DeadLetters struct {
	Tenant  TenantID
	Handler HandlerName
	// Type is a GLOB pattern: "order-placed", "order-*".
	Type  string
	Class Class
	// Text is looked for in the message's id and in the last error, whatever its case.
	Text string
	// From and To bound the time at which the message occurred: from ≤ t < to.
	From, To time.Time
	// FailedFrom and FailedTo bound the time at which the delivery was given up.
	FailedFrom, FailedTo time.Time
}

// DeadLetterRef is a dead letter that was found, as it was then: one that was replayed since and died again has another fence.
type DeadLetterRef struct {
	ID      DeliveryID
	Handler HandlerName
	Class   Class
	Fence   Fence
}

// DeadLetterPlace is where a search goes on: behind this delivery of this handler. The zero value is the beginning.
type DeadLetterPlace struct {
	// Fence is the latest when the search began. What died under a later one is not found, whatever the clock says: a bulk replay never meets
	// again what it has replayed itself.
	Fence   Fence
	Handler HandlerName
	ID      DeliveryID
}

const windowDeadUp = `SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_dead
WHERE state = 'dead-letter' AND handler = ? AND id > ? ORDER BY id LIMIT ?`

const matchDead = `SELECT d.id, d.handler, d.failure_class, d.fence
FROM json_each(:ids) j CROSS JOIN outbox_deliveries d ON d.id = j.value CROSS JOIN outbox_messages m ON m.seq = d.seq
WHERE d.state = 'dead-letter' AND d.tenant = :tenant AND d.fence <= :fence
  AND (:class = '' OR d.failure_class = :class) AND (:type = '' OR m.type GLOB :type)
  AND (:from IS NULL OR m.occurred_at >= :from) AND (:to IS NULL OR m.occurred_at < :to)
  AND (:failed_from IS NULL OR d.completed_at >= :failed_from) AND (:failed_to IS NULL OR d.completed_at < :failed_to)
  AND (:text = '' OR instr(lower(m.id), lower(:text)) > 0 OR instr(lower(coalesce(d.last_error, '')), lower(:text)) > 0)
ORDER BY d.id LIMIT :limit`

// FindDeadLetters finds up to limit dead letters by handler and id, from a place on, among those of registered handlers. It looks at a
// bounded number of rows, so it can find few, even none, and still have a next place; done says that it has not.
func (d *Dispatcher) FindDeadLetters(ctx context.Context, f DeadLetters, after DeadLetterPlace, limit int) (found []DeadLetterRef, next DeadLetterPlace, done bool, err error) {
	handlers, err := d.handlersOf(f.Handler)
	if err != nil {
		return nil, next, false, err
	}
	tx, err := d.config.Read.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, next, false, fmt.Errorf("find dead letters: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if after.Fence == 0 {
		if err := tx.QueryRowContext(ctx, `SELECT value FROM posthorn_meta WHERE name = 'fence'`).Scan(&after.Fence); err != nil {
			return nil, next, false, fmt.Errorf("read latest fence: %w", err)
		}
	}
	first, _ := slices.BinarySearch(handlers, after.Handler)
	for _, handler := range handlers[first:] {
		place := DeadLetterPlace{Fence: after.Fence, Handler: handler}
		if handler == after.Handler {
			place.ID = after.ID
		}
		looked, err := ids(ctx, tx, windowDeadUp, string(handler), int64(place.ID), listWindow)
		if err != nil {
			return nil, next, false, fmt.Errorf("find dead letters of %s: %w", handler, err)
		}
		if len(looked) == 0 {
			continue
		}
		if found, err = f.match(ctx, tx, after.Fence, looked, limit); err != nil {
			return nil, next, false, fmt.Errorf("find dead letters of %s: %w", handler, err)
		}
		place.ID = DeliveryID(looked[len(looked)-1])
		if len(found) == limit {
			place.ID = found[limit-1].ID
		}
		return found, place, false, nil
	}
	return nil, next, true, nil
}

func (f DeadLetters) match(ctx context.Context, tx *sql.Tx, fence Fence, looked []int64, limit int) ([]DeadLetterRef, error) {
	rows, err := tx.QueryContext(ctx, matchDead,
		sql.Named("ids", intList(looked)), sql.Named("tenant", string(f.Tenant)), sql.Named("class", string(f.Class)), sql.Named("type", f.Type),
		sql.Named("from", optionalTime(f.From)), sql.Named("to", optionalTime(f.To)), sql.Named("text", f.Text),
		sql.Named("fence", int64(fence)), sql.Named("failed_from", optionalTime(f.FailedFrom)), sql.Named("failed_to", optionalTime(f.FailedTo)), sql.Named("limit", limit))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []DeadLetterRef
	for rows.Next() {
		var r DeadLetterRef
		if err := rows.Scan(&r.ID, &r.Handler, &r.Class, &r.Fence); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}
