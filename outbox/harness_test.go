package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite"
)

// bed is a database with a writer and a reader pool, for tests.
type bed struct {
	path   string
	writer *Writer
	write  *sql.DB
	read   *bun.DB
}

// What these tests end is the process, which loses nothing that was written; the power is cut elsewhere.
const dsnOptions = "?_journal_mode=WAL&_synchronous=OFF&_foreign_keys=1&_txlock=immediate&_busy_timeout=2000"

func openBed(t testing.TB, path string) *bed {
	t.Helper()
	return openBedWith(t, path, WriterConfig{})
}

func openBedWith(t testing.TB, path string, config WriterConfig) *bed {
	t.Helper()
	write, err := sql.Open("sqlite", "file:"+path+dsnOptions)
	if err != nil {
		t.Fatal(err)
	}
	write.SetMaxOpenConns(1)
	if err := Install(context.Background(), write); err != nil {
		t.Fatal(err)
	}
	read, err := sql.Open("sqlite", "file:"+path+"?_query_only=1&_busy_timeout=2000")
	if err != nil {
		t.Fatal(err)
	}
	read.SetMaxOpenConns(2)
	writer, err := NewWriter(bun.NewDB(write, sqlitedialect.New()), config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{path: path, writer: writer, write: write, read: bun.NewDB(read, sqlitedialect.New())}
	t.Cleanup(b.close)
	return b
}

func newBed(t testing.TB, types ...string) *bed {
	t.Helper()
	b := openBed(t, filepath.Join(t.TempDir(), "outbox.db"))
	b.do(t, func(ctx context.Context, tx *Tx) error {
		var declared []TypeVersion
		for _, name := range types {
			declared = append(declared, TypeVersion{Type: name, SchemaVersion: 1})
		}
		return DeclareTypes(ctx, tx, declared)
	})
	return b
}

func (b *bed) close() {
	_ = b.writer.Close(context.Background())
	_ = b.write.Close()
	_ = b.read.Close()
}

func (b *bed) do(t testing.TB, fn Command) {
	t.Helper()
	if err := b.writer.Do(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) stage(t testing.TB, messages ...Message) []Message {
	t.Helper()
	var staged []Message
	b.do(t, func(ctx context.Context, tx *Tx) error {
		staged = nil
		for _, m := range messages {
			m, err := Stage(ctx, tx, m)
			if err != nil {
				return err
			}
			staged = append(staged, m)
		}
		return nil
	})
	return staged
}

func (b *bed) dispatcher(t testing.TB, c Config, handlers ...Handler) *Dispatcher {
	t.Helper()
	c.Writer, c.Read = b.writer, b.read
	d, err := NewDispatcher(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handlers {
		if err := d.Register(context.Background(), h); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Stop(ctx)
	})
	return d
}

// row is a delivery as stored.
type row struct {
	ID, Attempt, Charged, Fence int64
	State, Handler              string
	LastError, Class            sql.NullString
	Next, Completed             sql.NullInt64
}

func (b *bed) rows(t testing.TB) []row {
	t.Helper()
	rows, err := b.read.DB.Query(`SELECT id, attempt, charged, fence, state, handler, last_error, failure_class, next_attempt_at, completed_at FROM outbox_deliveries ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.ID, &r.Attempt, &r.Charged, &r.Fence, &r.State, &r.Handler, &r.LastError, &r.Class, &r.Next, &r.Completed); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// eventually waits for a condition that the test's own actions bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

// recorder is a handler that remembers what it received.
type recorder struct {
	mu       sync.Mutex
	received []Delivery
	answer   func(Delivery) error
}

func (r *recorder) handle(_ context.Context, d Delivery) error {
	r.mu.Lock()
	r.received = append(r.received, d)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(d)
	}
	return nil
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.received)
}

func handler(name, pattern string, r *recorder) Handler {
	return Handler{Name: HandlerName(name), Routes: []Route{{Pattern: pattern}}, Outside: r.handle, RepeatKey: "message id"}
}

func event(i int) Message {
	return Message{Type: "thing-done", Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
}
