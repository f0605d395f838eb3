package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// BackfillHold is the hold of a lane whose backfill is not all in: what arrives meanwhile must not be delivered before what came earlier.
const BackfillHold = "backfill: held until its last slice is in"

var (
	// ErrBackfillRuns: the handler is being given its past already.
	ErrBackfillRuns = errors.New("a backfill of this handler goes on already")
	// ErrNoBackfill: there is none of this handler.
	ErrNoBackfill = errors.New("there was no backfill of this handler")
)

// Backfill is how far a handler has been given the messages of the past that its routes match.
type Backfill struct {
	Handler  HandlerName
	Actor    string
	From, To time.Time // of the occurrence; zero for no bound
	// Next is where the next slice begins, Last the last message that is looked at.
	Next, Last int64
	// Added is how many deliveries the handler got.
	Added     int64
	StartedAt time.Time
	// FinishedAt is zero while it goes on.
	FinishedAt time.Time
}

const insertBackfill = `INSERT INTO outbox_backfills(handler, actor, occurred_from, occurred_to, next_seq, last_seq, started_at)
SELECT ?, ?, ?, ?, 0, coalesce(max(seq), 0), ? FROM outbox_messages WHERE true
ON CONFLICT (handler) DO UPDATE SET actor = excluded.actor, occurred_from = excluded.occurred_from, occurred_to = excluded.occurred_to,
  next_seq = 0, last_seq = excluded.last_seq, added = 0, started_at = excluded.started_at, finished_at = NULL WHERE finished_at IS NOT NULL`

// A lane that is held already stays held for its own reason, and after the backfill too.
const holdForBackfill = `INSERT INTO outbox_lanes(handler, held_at, reason) VALUES (?, ?, ?) ON CONFLICT (handler) DO NOTHING`

// BeginBackfill holds a handler's lane and notes that it shall be given the kept integration events of the past that its routes match and
// that it has no delivery of, all of them or those that occurred from ≤ t < to. ContinueBackfill does it; both the note and the hold outlive
// the process. What the handler has handled already it gets no second time, and what it was given after a message of the past stays before it.
func (d *Dispatcher) BeginBackfill(ctx context.Context, tx *Tx, actor string, handler HandlerName, from, to time.Time) error {
	if handler == Unrouted || !d.knows(handler) {
		return fmt.Errorf("backfill %s: %w", handler, ErrUnknownHandler)
	}
	n, err := execCount(ctx, tx, insertBackfill, string(handler), actor, optionalTime(from), optionalTime(to), micros(tx.Now))
	if err != nil {
		return fmt.Errorf("begin backfill of %s: %w", handler, err)
	}
	if n == 0 {
		return fmt.Errorf("begin backfill of %s: %w", handler, ErrBackfillRuns)
	}
	if _, err := execCount(ctx, tx, holdForBackfill, string(handler), micros(tx.Now), BackfillHold); err != nil {
		return fmt.Errorf("hold %s for its backfill: %w", handler, err)
	}
	tx.noRide = true
	tx.AfterCommit(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if l := d.lanes[handler]; l != nil && l.held == "" {
			l.held = BackfillHold
		}
	})
	return nil
}

const selectBackfill = `SELECT handler, actor, occurred_from, occurred_to, next_seq, last_seq, added, started_at, finished_at FROM outbox_backfills`

type scanner interface{ Scan(...any) error }

func scanBackfill(row scanner) (Backfill, error) {
	var b Backfill
	var from, to, finished sql.NullInt64
	var started int64
	err := row.Scan(&b.Handler, &b.Actor, &from, &to, &b.Next, &b.Last, &b.Added, &started, &finished)
	b.StartedAt = fromMicros(started)
	for _, t := range []struct {
		from sql.NullInt64
		into *time.Time
	}{{from, &b.From}, {to, &b.To}, {finished, &b.FinishedAt}} {
		if t.from.Valid {
			*t.into = fromMicros(t.from.Int64)
		}
	}
	return b, err
}

// FindBackfill reads how a handler's latest backfill stands; ErrNoBackfill when there was none.
func FindBackfill(ctx context.Context, db *sql.DB, handler HandlerName) (Backfill, error) {
	b, err := scanBackfill(db.QueryRowContext(ctx, selectBackfill+` WHERE handler = ?`, string(handler)))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoBackfill
	}
	if err != nil {
		return b, fmt.Errorf("find backfill of %s: %w", handler, err)
	}
	return b, nil
}

// OpenBackfills lists those that are not finished, as a process finds them at its start.
func OpenBackfills(ctx context.Context, db *sql.DB) ([]Backfill, error) {
	rows, err := db.QueryContext(ctx, selectBackfill+` WHERE finished_at IS NULL ORDER BY handler`)
	if err != nil {
		return nil, fmt.Errorf("find backfills: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var open []Backfill
	for rows.Next() {
		b, err := scanBackfill(rows)
		if err != nil {
			return nil, fmt.Errorf("find backfills: %w", err)
		}
		open = append(open, b)
	}
	return open, rows.Err()
}

// backfillPatience is how often a lane whose attempts still run is looked at again. They were claimed in another order than the one to come.
const backfillPatience = 100 * time.Millisecond

// ContinueBackfill gives a handler the rest of its past, slice by slice, and frees its lane in the commit of the last. It returns early when
// ctx ends, and is called again then, in this process or the next.
func (d *Dispatcher) ContinueBackfill(ctx context.Context, handler HandlerName) error {
	for {
		if !d.knows(handler) {
			return fmt.Errorf("backfill %s: %w", handler, ErrUnknownHandler)
		}
		var result sliceResult
		err := d.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) (err error) {
			result, err = d.backfillSlice(ctx, tx, handler)
			return err
		})
		if err != nil {
			return fmt.Errorf("backfill %s: %w", handler, err)
		}
		if result.finished {
			return nil
		}
		pause := 2 * time.Millisecond
		if result.busy {
			pause = backfillPatience
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("backfill %s: %w", handler, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
