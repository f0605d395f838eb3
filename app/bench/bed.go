package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// The work of every scenario: one row of business data and one message of 88 bytes.
const (
	benchType   = "parcel-sent"
	insertRow   = `INSERT INTO bench_parcels(id, state) VALUES (?, 'sent')`
	benchTable  = `CREATE TABLE IF NOT EXISTS bench_parcels (id INTEGER PRIMARY KEY, state TEXT NOT NULL) STRICT;`
	benchSchema = benchTable + "\nINSERT INTO outbox_types VALUES ('" + benchType + "', 1) ON CONFLICT DO NOTHING;"
)

var benchPayload = []byte(`{"parcel":"P-1001","carrier":"north","pieces":2,"weight":"4.250","to":"Harbour Lane 7"}`)

// bed is a database under measurement.
type bed struct {
	path   string
	store  *store.Store
	nextID atomic.Int64
	// keys is how many ordering keys the messages share; 0: they have none.
	keys int64
}

func openBed(ctx context.Context, dir string, handlers ...string) (*bed, error) {
	b := &bed{path: filepath.Join(dir, "bench.db")}
	schema := outbox.Schema + benchSchema
	for _, h := range handlers {
		schema += fmt.Sprintf("\nINSERT INTO outbox_routes(handler, pattern) VALUES ('%s', '*') ON CONFLICT DO NOTHING;", h)
	}
	var err error
	b.store, err = store.Open(ctx, store.Options{Path: b.path, Schema: schema, SchemaVersion: outbox.SchemaVersion, Create: true})
	return b, err
}

func (b *bed) close() { _ = b.store.Close(context.Background()) }

// command changes a business row and stages a message through the writer.
func (b *bed) command(ctx context.Context) error {
	id := b.nextID.Add(1)
	return b.store.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		row, err := tx.Stmt(ctx, insertRow)
		if err != nil {
			return err
		}
		if _, err := row.ExecContext(ctx, id); err != nil {
			return err
		}
		m := outbox.Message{Type: benchType, Payload: benchPayload}
		if b.keys > 0 {
			m.OrderingKey = fmt.Sprintf("key-%d", id%b.keys)
		}
		_, err = outbox.Stage(ctx, tx, m)
		return err
	})
}

// fill stages n messages as fast as it goes.
func (b *bed) fill(ctx context.Context, n int) error {
	const callers = 64
	var left atomic.Int64
	left.Store(int64(n))
	return together(callers, func() error {
		for left.Add(-1) >= 0 {
			if err := b.command(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// dispatcher starts delivery to handlers.
func (b *bed) dispatcher(ctx context.Context, handlers ...outbox.Handler) (*outbox.Dispatcher, error) {
	d, err := outbox.NewDispatcher(outbox.Config{Writer: b.store.Writer, Read: b.store.Read})
	if err != nil {
		return nil, err
	}
	for _, h := range handlers {
		if err := d.Register(ctx, h); err != nil {
			return nil, err
		}
	}
	return d, d.Start(ctx)
}

// together runs fn in n goroutines and returns the first error.
func together(n int, fn func() error) error {
	var group sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		group.Go(func() { errs <- fn() })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rate runs fn in callers goroutines for the length and returns how often it was done in a second.
func rate(callers int, length time.Duration, fn func() error) (float64, error) {
	for range 20 {
		if err := fn(); err != nil { // statements prepared, pages in the cache
			return 0, err
		}
	}
	var done atomic.Int64
	began := time.Now()
	end := began.Add(length)
	err := together(callers, func() error {
		for time.Now().Before(end) {
			if err := fn(); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / time.Since(began).Seconds(), err
}

// rawLoop is the least that the same work costs on the same tables: prepared statements on one connection, one transaction for each.
type rawLoop struct {
	mu                       sync.Mutex
	db                       *sql.DB
	begin, row, message, end *sql.Stmt
	id                       int64
}

const rawMessage = `INSERT INTO outbox_messages(id, type, occurred_at, payload) VALUES (?, '` + benchType + `', ?, ?)`

func (b *bed) raw(ctx context.Context) (*rawLoop, error) {
	db, err := sql.Open("sqlite", "file:"+b.path+"?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_pragma=wal_autocheckpoint(4000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	r := &rawLoop{db: db}
	for _, s := range []struct {
		into  **sql.Stmt
		query string
	}{{&r.begin, "BEGIN IMMEDIATE"}, {&r.row, insertRow}, {&r.message, rawMessage}, {&r.end, "COMMIT"}} {
		if *s.into, err = db.PrepareContext(ctx, s.query); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *rawLoop) command(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id++
	if _, err := r.begin.ExecContext(ctx); err != nil {
		return err
	}
	if _, err := r.row.ExecContext(ctx, r.id); err != nil {
		return err
	}
	if _, err := r.message.ExecContext(ctx, string(outbox.NewMessageID()), time.Now().UnixMicro(), benchPayload); err != nil {
		return err
	}
	_, err := r.end.ExecContext(ctx)
	return err
}
