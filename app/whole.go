package app

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/guest"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

const (
	// wholePatience is how long something of the contract may be missing before anybody is told: a migration of the application's may put it back.
	wholePatience = 3 * time.Second
	// adoptWindow is how many numbers of messages one look for messages without a delivery goes through, adoptBatch how many get one in one
	// command, and adoptTime how long all of that may take in one look.
	adoptWindow = 2000
	adoptBatch  = 200
	adoptTime   = 200 * time.Millisecond
)

// whole watches that the outbox in another program's database has all of its contract while messages are delivered. What is staged while the
// trigger that fans out is gone has no delivery: once the outbox is whole again such messages are kept for unrouted, as those that match no
// route, so that they are counted and shown, and a backfill finds them. Its look is called by one goroutine.
type whole struct {
	store    *store.Store
	contract guest.Contract
	logger   *slog.Logger
	anew     bool // what was known of the database is of another copy of it

	missing atomic.Pointer[[]string] // for longer than the patience; nil: nothing

	begun   bool
	version int64     // of the schema, when it was looked at; it changes with every CREATE and DROP of anybody's
	lacks   []string  // what was missing then
	since   time.Time // since when something is
	upTo    int64     // every message up to this number has a delivery
	dirty   int64     // up to this number messages may have none
}

// Missing lists what the outbox lacks.
func (w *whole) Missing() []string {
	if w == nil {
		return nil
	}
	if missing := w.missing.Load(); missing != nil {
		return *missing
	}
	return nil
}

const (
	// One statement, so one snapshot: the messages up to this number were staged under this schema, or an earlier one.
	readStaged = `SELECT (SELECT schema_version FROM pragma_schema_version), coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'outbox_messages'), 0)`
	readWhole  = `SELECT value FROM control.posthorn_marks WHERE name = 'whole'`
	keepWhole  = `INSERT INTO control.posthorn_marks(name, value) VALUES ('whole', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

	findBare = `SELECT m.seq FROM main.outbox_messages m WHERE m.seq > ? AND m.seq <= ?
AND NOT EXISTS (SELECT 1 FROM main.outbox_deliveries d WHERE d.seq = m.seq) ORDER BY m.seq LIMIT ?`
	// The bounds are those of the trigger that may have been gone too.
	adoptBare = `INSERT INTO main.outbox_deliveries(seq, handler, tenant, next_attempt_at, blocked, created_at)
SELECT m.seq, 'unrouted', m.tenant, at, 0, at FROM (SELECT seq, tenant, min(max(occurred_at, 0), 253402300799999999) AS at FROM main.outbox_messages) m
WHERE m.seq IN (SELECT value FROM json_each(?)) AND NOT EXISTS (SELECT 1 FROM main.outbox_deliveries d WHERE d.seq = m.seq)`
)

// look looks once, without the write lock unless there is something to mend.
func (w *whole) look(ctx context.Context) error {
	if !w.begun {
		if err := w.store.Upkeep.DB.QueryRowContext(ctx, readWhole).Scan(&w.upTo); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read how far the outbox was whole: %w", err)
		}
		if w.anew {
			w.upTo = 0
		}
	}
	var version, newest int64
	if err := w.store.Read.DB.QueryRowContext(ctx, readStaged).Scan(&version, &newest); err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	if !w.begun || version != w.version {
		lacks, err := w.contract.Missing(ctx, w.store.Read.DB)
		if err != nil {
			return fmt.Errorf("look at the schema: %w", err)
		}
		w.begun, w.version, w.lacks, w.dirty = true, version, lacks, newest
	}
	if len(w.lacks) > 0 {
		w.tell()
		w.dirty = newest
		return nil
	}
	w.since = time.Time{}
	if w.missing.Swap(nil) != nil {
		w.logger.Info("the outbox in the database is whole again")
	}
	if w.upTo >= w.dirty {
		w.upTo = newest
		return nil
	}
	return w.adopt(ctx)
}

// tell makes known what is missing, when it has been for long enough.
func (w *whole) tell() {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	if now.Sub(w.since) < wholePatience {
		return
	}
	lacks := w.lacks
	if before := w.missing.Swap(&lacks); before == nil || strings.Join(*before, ",") != strings.Join(lacks, ",") {
		w.logger.Error("the outbox in the database is incomplete: what is staged there may be kept and not delivered", "missing", strings.Join(lacks, ", "),
			"runbook", "outbox-incomplete")
	}
}

// adopt gives messages without any delivery that of the reserved handler, for a time, and goes on at the next look.
func (w *whole) adopt(ctx context.Context) error {
	for began := time.Now(); w.upTo < w.dirty && time.Since(began) < adoptTime; {
		end := min(w.upTo+adoptWindow, w.dirty)
		bare, err := w.bare(ctx, end)
		if err != nil {
			return err
		}
		if len(bare) > 0 {
			given, err := w.give(ctx, bare)
			if err != nil {
				return err
			}
			if given > 0 {
				w.logger.Warn("messages that had no delivery are kept for unrouted", "messages", given, "runbook", "outbox-incomplete")
			}
		}
		if len(bare) == adoptBatch {
			end = bare[len(bare)-1]
		}
		w.upTo = end
	}
	return nil
}

func (w *whole) bare(ctx context.Context, end int64) (bare []int64, err error) {
	rows, err := w.store.Read.DB.QueryContext(ctx, findBare, w.upTo, end, adoptBatch)
	if err != nil {
		return nil, fmt.Errorf("find messages without a delivery: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, fmt.Errorf("find messages without a delivery: %w", err)
		}
		bare = append(bare, seq)
	}
	return bare, rows.Err()
}

func (w *whole) give(ctx context.Context, bare []int64) (given int64, err error) {
	list, err := json.Marshal(bare)
	if err != nil {
		return 0, err
	}
	err = w.store.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		done, err := tx.Tx.Tx.ExecContext(ctx, adoptBare, string(list))
		if err != nil {
			return err
		}
		given, err = done.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("keep messages for unrouted: %w", err)
	}
	return given, nil
}
