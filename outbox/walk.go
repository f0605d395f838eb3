package outbox

import (
	"context"
	"database/sql"
	"fmt"
)

const selectWindowEnd = `SELECT count(*), coalesce(min(seq), 0) FROM (SELECT seq FROM outbox_messages WHERE seq < ? ORDER BY seq DESC LIMIT ?)`

// A list by message walks down the sequence, from a place to the end of its window.
const walkMessageRows = `SELECT ` + messageColumns + `, m.seq FROM outbox_messages m
WHERE m.seq < :after AND m.seq >= :end` + filterMessages + `
  AND (:handler = '' OR EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = m.seq AND d.handler = :handler AND (:state = '' OR d.state = :state)))
  AND (:state = '' OR :handler <> '' OR NOT EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.seq = m.seq AND d.state <> :state))
ORDER BY m.seq DESC LIMIT :limit`

// walkMessages lists by message: for any state, and for dispatched, which most messages are.
func walkMessages(ctx context.Context, tx *sql.Tx, f Filter, after Place, limit, window int) (MessagePage, error) {
	var page MessagePage
	var seen int
	var end int64
	if err := tx.QueryRowContext(ctx, selectWindowEnd, int64(after), window).Scan(&seen, &end); err != nil {
		return page, err
	}
	rows, err := tx.QueryContext(ctx, walkMessageRows, f.args(sql.Named("after", int64(after)), sql.Named("end", end), sql.Named("limit", limit+1))...)
	if err != nil {
		return page, err
	}
	full, err := page.take(rows, limit)
	if err != nil {
		return page, err
	}
	if !full {
		page.Next = 0
		if seen == window {
			page.Next = Place(end)
		}
	}
	return page, nil
}

const (
	nextOpenHandler = `SELECT min(handler) FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler > ?`
	nextDeadHandler = `SELECT min(handler) FROM outbox_deliveries INDEXED BY outbox_deliveries_dead WHERE state = 'dead-letter' AND handler > ?`

	windowPending = `SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open
WHERE completed_at IS NULL AND state = 'pending' AND handler = ? AND id < ? ORDER BY id DESC LIMIT ?`
	windowDead = `SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_dead
WHERE state = 'dead-letter' AND handler = ? AND id < ? ORDER BY id DESC LIMIT ?`
	// What is claimed is bounded by the concurrency of the lanes.
	windowProcessing = `SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_leased
WHERE state = 'processing' AND (?1 = '' OR handler = ?1) AND id < ?2 ORDER BY id DESC LIMIT ?3`
)

// A list by delivery shows each message once, at its newest delivery in the state; without a handler it leaves out messages that a state
// of higher rank names.
const walkDeliveryRows = `SELECT ` + messageColumns + `, d.id FROM json_each(:ids) j
CROSS JOIN outbox_deliveries d ON d.id = j.value CROSS JOIN outbox_messages m ON m.seq = d.seq
WHERE d.state = :state` + filterMessages + `
  AND (:handler <> '' AND d.handler = :handler OR :handler = '' AND NOT EXISTS (SELECT 1 FROM outbox_deliveries e WHERE e.seq = d.seq
    AND (e.state = 'dead-letter' AND :state <> 'dead-letter' OR e.state = 'processing' AND :state = 'pending')))
  AND NOT EXISTS (SELECT 1 FROM outbox_deliveries e WHERE e.seq = d.seq AND e.id > d.id AND e.state = :state AND (:handler = '' OR e.handler = :handler))
ORDER BY d.id DESC LIMIT :limit`

// walkDeliveries lists by delivery, for the states that a partial index keeps.
func walkDeliveries(ctx context.Context, tx *sql.Tx, f Filter, after Place, limit, window int) (MessagePage, error) {
	var page MessagePage
	ids, err := placesOf(ctx, tx, f, after, window)
	if err != nil || len(ids) == 0 {
		return page, err
	}
	rows, err := tx.QueryContext(ctx, walkDeliveryRows, f.args(sql.Named("ids", intList(ids)), sql.Named("limit", limit+1))...)
	if err != nil {
		return page, err
	}
	full, err := page.take(rows, limit)
	if err != nil {
		return page, err
	}
	if !full {
		page.Next = 0
		if len(ids) == window {
			page.Next = Place(ids[len(ids)-1])
		}
	}
	return page, nil
}

// placesOf finds the newest deliveries in a state below a place. The indexes keep them by handler, each in order, so those of the handlers
// are merged.
func placesOf(ctx context.Context, tx *sql.Tx, f Filter, below Place, window int) ([]int64, error) {
	if f.State == StateProcessing {
		return ids(ctx, tx, windowProcessing, string(f.Handler), int64(below), window)
	}
	next, query := nextOpenHandler, windowPending
	if f.State == StateDeadLetter {
		next, query = nextDeadHandler, windowDead
	}
	if f.Handler != "" {
		return ids(ctx, tx, query, string(f.Handler), int64(below), window)
	}
	var merged []int64
	for last := ""; ; {
		var handler sql.NullString
		if err := tx.QueryRowContext(ctx, next, last).Scan(&handler); err != nil {
			return nil, fmt.Errorf("find next handler: %w", err)
		}
		if !handler.Valid {
			return merged, nil
		}
		last = handler.String
		of, err := ids(ctx, tx, query, last, int64(below), window)
		if err != nil {
			return nil, err
		}
		merged = newest(append(merged, of...), window)
	}
}

func ids(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanIDs(rows)
}
