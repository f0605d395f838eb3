package outbox

import (
	"context"
	"fmt"
	"time"
)

// TargetGone is the hold of a lane whose target said that it is gone for good: what is pending stays pending until somebody resumes it.
const TargetGone = "disabled: its target is gone; resume it when it is back"

// Hold stops a lane: its deliveries stay pending and visible, running attempts finish. The hold outlives the process.
func (d *Dispatcher) Hold(ctx context.Context, name HandlerName, reason string) error {
	return d.setHold(ctx, name, func(ctx context.Context, tx *Tx) error {
		return storeHold(ctx, tx, name, reason)
	}, &reason)
}

// Resume lets a held lane flow again, one whose backfill is not all in as soon as it is, and has one whose breaker is open probe at once.
func (d *Dispatcher) Resume(ctx context.Context, name HandlerName) error {
	left := ""
	return d.setHold(ctx, name, func(ctx context.Context, tx *Tx) (err error) {
		left, err = ReleaseLane(ctx, tx, name)
		return err
	}, &left)
}

// ReleaseLane ends a stored hold, in a transaction that changes more than that; Resume has the running lane follow it. It returns the hold
// that is left: a backfill keeps its own.
func ReleaseLane(ctx context.Context, tx *Tx, name HandlerName) (left string, err error) {
	if _, err := execCount(ctx, tx, `DELETE FROM outbox_lanes WHERE handler = ?`, string(name)); err != nil {
		return "", fmt.Errorf("release %s: %w", name, err)
	}
	n, err := execCount(ctx, tx, holdWhileBackfilled, micros(tx.Now), BackfillHold, string(name))
	if err != nil {
		return "", fmt.Errorf("release %s: %w", name, err)
	}
	if n == 1 {
		left = BackfillHold
	}
	return left, nil
}

const holdWhileBackfilled = `INSERT INTO outbox_lanes(handler, held_at, reason) SELECT handler, ?, ? FROM outbox_backfills WHERE handler = ? AND finished_at IS NULL`

func (d *Dispatcher) setHold(ctx context.Context, name HandlerName, change Command, reason *string) error {
	d.mu.Lock()
	l := d.lanes[name]
	d.mu.Unlock()
	if l == nil {
		return fmt.Errorf("hold %s: %w", name, ErrUnknownHandler)
	}
	if err := d.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
		tx.noRide = true
		return change(ctx, tx)
	}); err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	d.mu.Lock()
	if l = d.lanes[name]; l != nil { // as it is now
		now := time.Now()
		if *reason == "" {
			if l.held != "" {
				l.restart(now)
			}
			l.gone = false
			l.breaker.probeNow(now)
		}
		l.held, l.suspected = *reason, true
		d.stirred[name] = true
		d.told = append(d.told, name)
	}
	d.mu.Unlock()
	d.tell()
	d.signal()
	return nil
}

const upsertHold = `INSERT INTO outbox_lanes(handler, held_at, reason) VALUES (?, ?, ?)
ON CONFLICT (handler) DO UPDATE SET reason = excluded.reason`

func storeHold(ctx context.Context, tx *Tx, name HandlerName, reason string) error {
	if _, err := execCount(ctx, tx, upsertHold, string(name), micros(tx.Now), reason); err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	return nil
}

// tell passes on whose lanes changed by themselves or by a hold.
func (d *Dispatcher) tell() {
	d.mu.Lock()
	told := d.told
	d.told = nil
	d.mu.Unlock()
	if d.config.ObserveLane != nil {
		for _, name := range told {
			d.config.ObserveLane(name)
		}
	}
}

func readHolds(ctx context.Context, tx *Tx) (map[HandlerName]string, error) {
	rows, err := tx.Tx.Tx.QueryContext(ctx, `SELECT handler, reason FROM outbox_lanes`)
	if err != nil {
		return nil, fmt.Errorf("read holds: %w", err)
	}
	defer func() { _ = rows.Close() }()
	held := map[HandlerName]string{}
	for rows.Next() {
		var name HandlerName
		var reason string
		if err := rows.Scan(&name, &reason); err != nil {
			return nil, fmt.Errorf("read holds: %w", err)
		}
		held[name] = reason
	}
	return held, rows.Err()
}
