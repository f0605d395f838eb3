package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite"
)

const writerSchema = `
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount >= 0)) STRICT;
CREATE TABLE IF NOT EXISTS posted (id INTEGER PRIMARY KEY, payload BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES ledger DEFERRABLE INITIALLY DEFERRED) STRICT;`

// writerDSN opens a file as the writer wants it.
func writerDSN(path string) string {
	return "file:" + path + "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_busy_timeout=100&_txlock=immediate" +
		"&_pragma=wal_autocheckpoint(4000)"
}

func openWriterDB(tb testing.TB) *bun.DB {
	tb.Helper()
	return openWriterFile(tb, filepath.Join(tb.TempDir(), "w.db"))
}

func openWriterFile(tb testing.TB, path string) *bun.DB {
	tb.Helper()
	pool, err := sql.Open("sqlite", writerDSN(path))
	if err != nil {
		tb.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	tb.Cleanup(func() { pool.Close() })
	if _, err := pool.ExecContext(context.Background(), writerSchema); err != nil {
		tb.Fatal(err)
	}
	return bun.NewDB(pool, sqlitedialect.New())
}

func startWriter(t *testing.T, db *bun.DB, cfg outbox.WriterConfig) *outbox.Writer {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = time.Hour // a slow machine refuses nothing
	}
	w, err := outbox.NewWriter(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// insert is a command that adds one row to the ledger.
func insert(id int) outbox.Command {
	return func(ctx context.Context, tx *outbox.Tx) error { return insertRow(ctx, tx, id) }
}

func insertRow(ctx context.Context, tx *outbox.Tx, id int) error {
	s, err := tx.Stmt(ctx, "INSERT INTO ledger(id, amount) VALUES (?, 1)")
	if err != nil {
		return err
	}
	_, err = s.ExecContext(ctx, id)
	return err
}

func plain(ctx context.Context, tx *outbox.Tx, query string) error {
	_, err := tx.Tx.Tx.ExecContext(ctx, query)
	return err
}

// ledger reads the ids that are in the file, by a connection of its own.
func ledger(t *testing.T, path string) []int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_query_only=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM ledger ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ids := []int{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// together sends commands so that they share one group: another one holds the writer until they all wait.
func together(t *testing.T, w *outbox.Writer, commands ...outbox.Command) []error {
	t.Helper()
	var senders []func() error
	for _, c := range commands {
		senders = append(senders, func() error { return w.Do(context.Background(), c) })
	}
	return sentTogether(t, w, senders...)
}

// errNoAnswer stands for the answer of a command whose sender's goroutine has ended.
var errNoAnswer = errors.New("its sender was not answered")

func sentTogether(t *testing.T, w *outbox.Writer, senders ...func() error) []error {
	t.Helper()
	errs := slices.Repeat([]error{errNoAnswer}, len(senders))
	started, held := make(chan struct{}), make(chan struct{})
	holding := make(chan error, 1)
	go func() {
		var once sync.Once
		holding <- w.First(context.Background(), func(context.Context, *outbox.Tx) error {
			once.Do(func() { close(started); <-held })
			return nil
		})
	}()
	<-started
	var wg sync.WaitGroup
	for i, send := range senders {
		wg.Go(func() { errs[i] = send() })
		for w.Waiting() <= i {
			runtime.Gosched()
		}
	}
	close(held)
	wg.Wait()
	if err := <-holding; err != nil {
		t.Errorf("the command that held the group: %v", err)
	}
	return errs
}

var errBusiness = errors.New("refused by a rule")

// misdeeds are commands that do what none may, and how each is answered.
var misdeeds = []struct {
	name    string
	command outbox.Command
	want    error // nil: any error
	rerun   bool  // the neighbours run again, each alone
}{
	{"business error", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), errBusiness)
	}, errBusiness, false},
	{"constraint", func(ctx context.Context, tx *outbox.Tx) error {
		if err := insertRow(ctx, tx, 50); err != nil {
			return err
		}
		return plain(ctx, tx, "INSERT INTO ledger(id, amount) VALUES (51, -1)")
	}, nil, false},
	{"panic", func(ctx context.Context, tx *outbox.Tx) error {
		if err := insertRow(ctx, tx, 50); err != nil {
			return err
		}
		panic("out of order")
	}, outbox.ErrCommandPanicked, false},
	{"ends its goroutine", func(ctx context.Context, tx *outbox.Tx) error {
		if err := insertRow(ctx, tx, 50); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	}, errNoAnswer, true},
	{"OR ROLLBACK", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), plain(ctx, tx, "INSERT OR ROLLBACK INTO ledger(id, amount) VALUES (51, -1)"))
	}, nil, true},
	{"OR ROLLBACK, swallowed", func(ctx context.Context, tx *outbox.Tx) error {
		_ = plain(ctx, tx, "INSERT OR ROLLBACK INTO ledger(id, amount) VALUES (51, -1)")
		_ = insertRow(ctx, tx, 50) // outside any transaction, were it not refused
		return nil
	}, outbox.ErrTxLost, true},
	{"COMMIT", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), plain(ctx, tx, "COMMIT"))
	}, nil, true},
	{"COMMIT, swallowed, and BEGIN", func(ctx context.Context, tx *outbox.Tx) error {
		_ = insertRow(ctx, tx, 50)
		_ = plain(ctx, tx, "COMMIT")
		_ = plain(ctx, tx, "BEGIN")
		_ = insertRow(ctx, tx, 51)
		return nil
	}, outbox.ErrTxLost, true},
	{"ROLLBACK", func(ctx context.Context, tx *outbox.Tx) error {
		_ = insertRow(ctx, tx, 50)
		return plain(ctx, tx, "ROLLBACK")
	}, outbox.ErrTxLost, true},
	{"ROLLBACK and BEGIN", func(ctx context.Context, tx *outbox.Tx) error {
		_ = insertRow(ctx, tx, 50)
		_ = plain(ctx, tx, "ROLLBACK; BEGIN")
		return insertRow(ctx, tx, 51)
	}, outbox.ErrTxLost, true},
	{"ROLLBACK, COMMIT of its own", func(ctx context.Context, tx *outbox.Tx) error {
		_ = plain(ctx, tx, "ROLLBACK; BEGIN IMMEDIATE")
		_ = insertRow(ctx, tx, 50)
		return plain(ctx, tx, "COMMIT")
	}, nil, true},
	{"Commit of the sql.Tx", func(ctx context.Context, tx *outbox.Tx) error {
		_ = insertRow(ctx, tx, 50)
		_ = tx.Tx.Commit()
		return nil
	}, outbox.ErrTxLost, true},
	{"Rollback of the sql.Tx", func(ctx context.Context, tx *outbox.Tx) error {
		_ = insertRow(ctx, tx, 50)
		return tx.Tx.Rollback()
	}, outbox.ErrTxLost, true},
	{"Commit of the Tx", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), tx.Commit())
	}, outbox.ErrTxOwned, false},
	{"SQL error", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), plain(ctx, tx, "INSERT INTO nowhere VALUES (1)"))
	}, nil, true},
	{"SQL error behind a constraint", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(plain(ctx, tx, "INSERT INTO ledger(id, amount) VALUES (51, -1)"), plain(ctx, tx, "INSERT INTO nowhere VALUES (1)"))
	}, nil, true},
	{"rows left open in a write", func(ctx context.Context, tx *outbox.Tx) error {
		rows, err := tx.Tx.Tx.QueryContext(ctx, "INSERT INTO ledger(id, amount) VALUES (50, 1), (51, 1) RETURNING id") //nolint:rowserrcheck,sqlclosecheck // the mistake under test
		if err != nil {
			return err
		}
		rows.Next()
		return nil
	}, outbox.ErrTxLost, true},
	{"interrupted by a context of its own", func(ctx context.Context, tx *outbox.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return plain(ctx, tx, `INSERT INTO ledger WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n) SELECT i, 1 FROM n`)
	}, context.DeadlineExceeded, true},
	{"deferred foreign key", func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(insertRow(ctx, tx, 50), plain(ctx, tx, "INSERT INTO child VALUES (1, 99)"))
	}, nil, true},
}

// TestWriterKeepsNeighbours sends one command that misbehaves between two that do not.
func TestWriterKeepsNeighbours(t *testing.T) {
	t.Parallel()
	for _, c := range misdeeds {
		for _, position := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s/%d", c.name, position), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "w.db")
				w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
				var runs atomic.Int32
				after := make([]int, 3)
				neighbour := func(id int) outbox.Command {
					return func(ctx context.Context, tx *outbox.Tx) error {
						runs.Add(1)
						tx.AfterCommit(func() { after[id]++ })
						return insertRow(ctx, tx, id)
					}
				}
				bad := func(ctx context.Context, tx *outbox.Tx) error {
					tx.AfterCommit(func() { after[0]++ })
					return c.command(ctx, tx)
				}
				commands := slices.Insert([]outbox.Command{neighbour(1), neighbour(2)}, position, bad)
				errs := together(t, w, commands...)
				got := errs[position]
				if got == nil || c.want != nil && !errors.Is(got, c.want) {
					t.Errorf("the command was answered %v, want %v", got, c.want)
				}
				for i, err := range errs {
					if i != position && err != nil {
						t.Errorf("neighbour %d: %v", i, err)
					}
				}
				if !slices.Equal(after, []int{0, 1, 1}) {
					t.Errorf("after-commit functions were called %v times, want once for each neighbour", after)
				}
				if reran := runs.Load() > 2; reran && !c.rerun {
					t.Errorf("the neighbours were run %d times, want 2", runs.Load())
				}
				if err := w.Do(t.Context(), insert(3)); err != nil {
					t.Errorf("next command: %v", err)
				}
				if got := ledger(t, path); !slices.Equal(got, []int{1, 2, 3}) {
					t.Errorf("the file holds %v, want [1 2 3]", got)
				}
			})
		}
	}
}

// TestWriterAlone sends each misdeed to an idle writer, which runs it on its sender's goroutine, and to one that is just being started.
func TestWriterAlone(t *testing.T) {
	t.Parallel()
	for _, c := range misdeeds {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "w.db")
			w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
			for i := range 3 {
				answer := make(chan error, 1)
				go func() {
					err := errNoAnswer
					defer func() { answer <- err }()
					err = w.Do(context.Background(), c.command)
				}()
				if got := <-answer; got == nil || c.want != nil && !errors.Is(got, c.want) {
					t.Errorf("the command was answered %v, want %v", got, c.want)
				}
				if err := w.Do(t.Context(), insert(i)); err != nil {
					t.Errorf("next command: %v", err)
				}
			}
			if got := ledger(t, path); !slices.Equal(got, []int{0, 1, 2}) {
				t.Errorf("the file holds %v, want [0 1 2]", got)
			}
		})
	}
}

func TestWriterSharesOneCommit(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	w := startWriter(t, openWriterDB(t), outbox.WriterConfig{GroupTime: time.Hour, Now: func() time.Time { return now }})
	var commits atomic.Int32
	w.OnCommit(func() { commits.Add(1) })
	var commands []outbox.Command
	seen := make([]time.Time, 20)
	for i := range seen {
		commands = append(commands, func(ctx context.Context, tx *outbox.Tx) error {
			seen[i] = tx.Now
			return insertRow(ctx, tx, i)
		})
	}
	for i, err := range together(t, w, commands...) {
		if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if got := commits.Load(); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	want := time.Date(2030, 1, 2, 2, 4, 5, 678_901_000, time.UTC)
	for i, at := range seen {
		if at != want {
			t.Errorf("command %d was told %v, want %v", i, at, want)
		}
	}
	if err := w.Do(t.Context(), func(context.Context, *outbox.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := commits.Load(); got != 1 {
		t.Errorf("a command that changed nothing was told as a commit")
	}
}

// TestWriterCallerLeaves ends the caller's context in the middle of a long write that stands between two others.
func TestWriterCallerLeaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		leave()
	}()
	errs := sentTogether(t, w,
		func() error { return w.Do(context.Background(), insert(1)) },
		func() error {
			return w.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
				close(started)
				return plain(ctx, tx, `INSERT INTO ledger
					WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i, 1 FROM n`)
			})
		},
		func() error { return w.Do(context.Background(), insert(2)) })
	for i, err := range errs {
		if err != nil {
			t.Errorf("command %d: %v; once started it is run to its end", i, err)
		}
	}
	if ctx.Err() == nil {
		t.Error("the caller had not left")
	}
	if got := ledger(t, path); len(got) != 2_002 {
		t.Errorf("%d rows, want 2,002", len(got))
	}
}

func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{Queue: 2, Deadline: 50 * time.Millisecond})
	started, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Do(context.Background(), func(ctx context.Context, tx *outbox.Tx) error {
			close(started)
			<-held
			if err := w.Do(ctx, insert(90)); !errors.Is(err, outbox.ErrNestedCommand) {
				t.Errorf("a command inside a command was answered %v", err)
			}
			if err := w.First(context.WithoutCancel(ctx), insert(91)); !errors.Is(err, outbox.ErrNestedCommand) {
				t.Errorf("a first command inside a command was answered %v", err)
			}
			return insertRow(ctx, tx, 1)
		}); err != nil {
			t.Error(err)
		}
	})
	<-started
	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.Do(ended, insert(92)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that had left was answered %v", err)
	}
	wg.Go(func() {
		if err := w.Do(context.Background(), insert(93)); !errors.Is(err, outbox.ErrDeadline) {
			t.Errorf("a command that waited too long was answered %v", err)
		}
	})
	leaving, leave := context.WithCancel(t.Context())
	wg.Go(func() {
		if err := w.Do(leaving, insert(94)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left while it waited was answered %v", err)
		}
	})
	for w.Waiting() < 2 {
		runtime.Gosched()
	}
	if err := w.Do(t.Context(), insert(95)); !errors.Is(err, outbox.ErrQueueFull) {
		t.Errorf("a full queue answered %v", err)
	}
	wg.Go(func() {
		if err := w.First(context.Background(), insert(2)); err != nil {
			t.Errorf("a first command at a full queue: %v", err)
		}
	})
	for w.Waiting() < 3 {
		runtime.Gosched()
	}
	leave()
	time.Sleep(60 * time.Millisecond)
	close(held)
	wg.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(96)); !errors.Is(err, outbox.ErrClosed) {
		t.Errorf("a closed writer answered %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("the file holds %v, want [1 2]", got)
	}
}
