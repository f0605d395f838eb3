package outbox

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	// purgeWindow is how many messages are looked at at once, purgeBatch how many are deleted in one command.
	purgeWindow = 500
	purgeBatch  = 200
	// purgeBytes bounds the payloads of one command: each of their pages is touched.
	purgeBytes = 4 << 20
)

// keptBy says why a message m is kept: 3, a delivery is unfinished; 2, a dead letter is; 1, it is young; 0, it may go.
const keptBy = `coalesce((SELECT max(CASE
  WHEN d.completed_at IS NULL THEN 3
  WHEN d.state = 'dead-letter' AND d.completed_at >= :dead THEN 2
  WHEN d.state = 'dispatched' AND d.completed_at >= :dispatched AND m.seq > :beyond THEN 1
  ELSE 0 END) FROM outbox_deliveries d WHERE d.seq = m.seq), m.occurred_at >= :dispatched)`

const selectWindow = `SELECT m.seq, octet_length(m.payload), ` + keptBy + ` FROM outbox_messages m WHERE m.seq > :after ORDER BY m.seq LIMIT :limit`

// What a window of the reader pool showed is looked at again where it is deleted: a replay may have come in between.
const selectRemovable = `SELECT m.seq FROM json_each(:seqs) j CROSS JOIN outbox_messages m ON m.seq = j.value WHERE ` + keptBy + ` = 0`

const (
	markPurged = `UPDATE outbox_inbox SET purged_at = ? WHERE (handler, tenant, message) IN (SELECT d.handler, d.tenant, m.id
FROM json_each(?) j CROSS JOIN outbox_deliveries d ON d.seq = j.value CROSS JOIN outbox_messages m ON m.seq = d.seq)`
	deletePurgedDeliveries = `DELETE FROM outbox_deliveries WHERE seq IN (SELECT value FROM json_each(?))`
	deletePurgedMessages   = `DELETE FROM outbox_messages WHERE seq IN (SELECT value FROM json_each(?))`
)

func (b bounds) args(more ...any) []any {
	return append([]any{sql.Named("dead", b.dead), sql.Named("dispatched", b.dispatched), sql.Named("beyond", b.beyond)}, more...)
}

// window is what a look at some messages showed.
type window struct {
	last   int64 // the last message of it; zero: there was none
	young  bool  // some are kept for their age only
	purged int64
}

type removable struct {
	seqs  []int64
	bytes int
}

// purgeWindow looks at the messages behind one and removes those that may go.
func (r *Retention) purgeWindow(ctx context.Context, rules RetentionRules, after int64, done *Purged) (window, error) {
	b, err := r.bounds(ctx, rules)
	if err != nil {
		return window{}, err
	}
	w, batches, err := r.look(ctx, b, after)
	if err != nil {
		return w, fmt.Errorf("find old messages: %w", err)
	}
	for _, batch := range batches {
		var n int64
		err := r.paced(ctx, func(ctx context.Context, tx *Tx) (err error) {
			n, err = r.purge(ctx, tx, b, batch)
			return err
		})
		if err != nil {
			return w, fmt.Errorf("remove old messages: %w", err)
		}
		w.purged += n
		done.Messages += n
	}
	return w, nil
}

func (r *Retention) look(ctx context.Context, b bounds, after int64) (window, [][]int64, error) {
	var w window
	rows, err := r.config.Read.DB.QueryContext(ctx, selectWindow, b.args(sql.Named("after", after), sql.Named("limit", purgeWindow))...)
	if err != nil {
		return w, nil, err
	}
	defer func() { _ = rows.Close() }()
	var batches [][]int64
	var batch removable
	for rows.Next() {
		var seq int64
		var bytes, kept int
		if err := rows.Scan(&seq, &bytes, &kept); err != nil {
			return w, nil, err
		}
		w.last = seq
		switch {
		case kept == 1:
			w.young = true
		case kept == 0:
			if len(batch.seqs) == purgeBatch || len(batch.seqs) > 0 && batch.bytes+bytes > purgeBytes {
				batches, batch = append(batches, batch.seqs), removable{}
			}
			batch.seqs, batch.bytes = append(batch.seqs, seq), batch.bytes+bytes
		}
	}
	if len(batch.seqs) > 0 {
		batches = append(batches, batch.seqs)
	}
	return w, batches, rows.Err()
}

// purge removes messages whole, as far as they may still go.
func (r *Retention) purge(ctx context.Context, tx *Tx, b bounds, seqs []int64) (int64, error) {
	still, err := deliveryIDs(ctx, tx, selectRemovable, b.args(sql.Named("seqs", intList(seqs)))...)
	if err != nil || len(still) == 0 {
		return 0, err
	}
	list := intList(still)
	if _, err := execCount(ctx, tx, markPurged, micros(tx.Now), list); err != nil {
		return 0, fmt.Errorf("mark handled messages: %w", err)
	}
	if err := r.discount(ctx, tx, list); err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	if _, err := execCount(ctx, tx, deletePurgedDeliveries, list); err != nil {
		return 0, fmt.Errorf("delete deliveries: %w", err)
	}
	return execCount(ctx, tx, deletePurgedMessages, list)
}

const countPurgedDead = `SELECT d.handler, count(*) FROM json_each(?) j CROSS JOIN outbox_deliveries d ON d.seq = j.value
WHERE d.state = 'dead-letter' GROUP BY d.handler`

// discount takes the dead letters that are about to be deleted out of the dispatcher's counts.
func (r *Retention) discount(ctx context.Context, tx *Tx, list string) error {
	if r.config.Dispatcher == nil {
		return nil
	}
	stmt, err := tx.Stmt(ctx, countPurgedDead)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, list)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	shifts := map[HandlerName]shift{}
	for rows.Next() {
		var name HandlerName
		var dead int64
		if err := rows.Scan(&name, &dead); err != nil {
			return err
		}
		shifts[name] = shift{failed: -dead}
	}
	if len(shifts) > 0 {
		r.config.Dispatcher.follow(tx, shifts, nil)
	}
	return rows.Err()
}
