//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// row is one delivery as the database keeps it, by the public schema.
type row struct {
	id, seq          int64
	message          string // tenant/id
	handler, state   string
	attempt, charged int
	fence, resendOf  int64
	class, failure   string
	completed        int64
	attempts         []attemptRow
	replays          int
	lastReplay       time.Time
}

// attemptRow is an attempt that failed.
type attemptRow struct {
	attempt int
	fence   int64
	charged bool
	class   string
	started time.Time
	took    time.Duration
}

// timedOut says that the attempt's time was up before the program learnt of an answer, as may happen on a machine with too much to do.
func (a attemptRow) timedOut() bool { return a.class == "failed" && a.took > attemptTime*95/100 }

// rows is the whole database, read after the program has ended.
type rows struct {
	messages   map[string]string // tenant/id → SHA-256 of the payload
	deliveries []*row
	documents  map[string]bool // tenant/collection/id
	integrity  string
}

// readRows reads a copy of the database, so that nothing here can touch the file itself.
func readRows(ctx context.Context, database, scratch string, beside, keep bool) (*rows, error) {
	path := filepath.Join(scratch, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(database+suffix, path+suffix); err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return nil, err
		}
	}
	defer func() {
		if keep {
			return
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
	}()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return nil, fmt.Errorf("open copy of the database: %w", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	r := &rows{messages: map[string]string{}, documents: map[string]bool{}}
	readDocuments := r.readDocuments
	if beside {
		readDocuments = r.readOrders
	}
	for _, read := range []func(context.Context, *sql.DB) error{r.readMessages, r.readDeliveries, r.readAttempts, r.readReplays, readDocuments} {
		if err := read(ctx, db); err != nil {
			return nil, fmt.Errorf("read copy of the database: %w", err)
		}
	}
	return r, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	return nil
}

// each runs a query and hands over its rows.
func each(ctx context.Context, db *sql.DB, query string, take func(scan func(...any) error) error) error {
	found, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := take(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}

func (r *rows) readMessages(ctx context.Context, db *sql.DB) error {
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(3)`).Scan(&r.integrity); err != nil {
		return err
	}
	return each(ctx, db, `SELECT tenant || '/' || id, CAST(payload AS BLOB) FROM outbox_messages`, func(scan func(...any) error) error {
		var name string
		var payload []byte
		err := scan(&name, &payload)
		sum := sha256.Sum256(payload)
		r.messages[name] = hex.EncodeToString(sum[:])
		return err
	})
}

func (r *rows) readDeliveries(ctx context.Context, db *sql.DB) error {
	return each(ctx, db, `SELECT d.id, d.seq, m.tenant || '/' || m.id, d.handler, d.state, d.attempt, d.charged, d.fence, coalesce(d.resend_of, 0),
  coalesce(d.failure_class, ''), coalesce(d.last_error, ''), coalesce(d.completed_at, 0)
FROM outbox_deliveries d JOIN outbox_messages m ON m.seq = d.seq ORDER BY d.id`, func(scan func(...any) error) error {
		d := &row{}
		err := scan(&d.id, &d.seq, &d.message, &d.handler, &d.state, &d.attempt, &d.charged, &d.fence, &d.resendOf, &d.class, &d.failure, &d.completed)
		r.deliveries = append(r.deliveries, d)
		return err
	})
}

func (r *rows) byID() map[int64]*row {
	byID := make(map[int64]*row, len(r.deliveries))
	for _, d := range r.deliveries {
		byID[d.id] = d
	}
	return byID
}

func (r *rows) readAttempts(ctx context.Context, db *sql.DB) error {
	byID := r.byID()
	return each(ctx, db, `SELECT delivery, attempt, fence, charged, class, started_at, duration FROM outbox_attempts ORDER BY id`, func(scan func(...any) error) error {
		var delivery, started, took int64
		var a attemptRow
		err := scan(&delivery, &a.attempt, &a.fence, &a.charged, &a.class, &started, &took)
		a.started, a.took = time.UnixMicro(started), time.Duration(took)*time.Microsecond
		if d := byID[delivery]; d != nil {
			d.attempts = append(d.attempts, a)
		}
		return err
	})
}

func (r *rows) readReplays(ctx context.Context, db *sql.DB) error {
	byID := r.byID()
	return each(ctx, db, `SELECT delivery, replayed_at FROM outbox_replays ORDER BY id`, func(scan func(...any) error) error {
		var delivery, at int64
		err := scan(&delivery, &at)
		if d := byID[delivery]; d != nil {
			d.replays++
			d.lastReplay = time.UnixMicro(at)
		}
		return err
	})
}

func (r *rows) readDocuments(ctx context.Context, db *sql.DB) error {
	return r.readNames(ctx, db, `SELECT tenant || '/' || collection || '/' || id FROM documents WHERE body IS NOT NULL`)
}

// readOrders reads what another program keeps in place of documents.
func (r *rows) readOrders(ctx context.Context, db *sql.DB) error {
	return r.readNames(ctx, db, `SELECT tenant || '/orders/' || id FROM orders`)
}

func (r *rows) readNames(ctx context.Context, db *sql.DB, query string) error {
	return each(ctx, db, query, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		r.documents[name] = true
		return err
	})
}
