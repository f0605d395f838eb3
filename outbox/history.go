package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// maxHistory bounds the attempts, and the replays, that are read for one delivery: the latest.
const maxHistory = 200

const selectAttempts = `SELECT attempt, fence, charged, class, coalesce(status, 0), error, coalesce(excerpt, ''), started_at, duration
FROM outbox_attempts WHERE delivery = ? ORDER BY id DESC LIMIT ?`

const selectReplays = `SELECT actor, reason, replayed_at, failure FROM outbox_replays WHERE delivery = ? ORDER BY id DESC LIMIT ?`

// history fills a delivery's attempts and replays, oldest first.
func history(ctx context.Context, tx *sql.Tx, d *DeliveryRecord) error {
	err := eachRow(ctx, tx, selectAttempts, int64(d.ID), func(rows *sql.Rows) error {
		var a AttemptRecord
		var started, duration int64
		if err := rows.Scan(&a.Attempt, &a.Fence, &a.Charged, &a.Class, &a.Status, &a.Error, &a.Excerpt, &started, &duration); err != nil {
			return err
		}
		a.StartedAt, a.Duration = fromMicros(started), time.Duration(duration)*time.Microsecond
		d.Attempts = append([]AttemptRecord{a}, d.Attempts...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read attempts of delivery %d: %w", d.ID, err)
	}
	err = eachRow(ctx, tx, selectReplays, int64(d.ID), func(rows *sql.Rows) error {
		var r ReplayRecord
		var at int64
		if err := rows.Scan(&r.Actor, &r.Reason, &at, &r.Failure); err != nil {
			return err
		}
		r.ReplayedAt = fromMicros(at)
		d.Replays = append([]ReplayRecord{r}, d.Replays...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read replays of delivery %d: %w", d.ID, err)
	}
	return nil
}

func eachRow(ctx context.Context, db querier, query string, delivery int64, take func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query, delivery, maxHistory)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
