package outbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
)

// commitFault stands between database/sql and the driver, and says what becomes of a COMMIT.
type commitFault struct {
	driver.Connector
	commit atomic.Pointer[func(really func() error) error]
}

func (f *commitFault) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultConn{conn.(sqliteConn), f}, nil
}

func (f *commitFault) set(commit func(really func() error) error) { f.commit.Store(&commit) }

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type faultConn struct {
	sqliteConn
	fault *commitFault
}

func (c *faultConn) Unwrap() driver.Conn { return c.sqliteConn }

func (c *faultConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err == nil && query == "COMMIT" {
		return &faultStmt{s, c.fault}, nil
	}
	return s, err
}

type faultStmt struct {
	driver.Stmt
	fault *commitFault
}

func (s *faultStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	really := func() error {
		result, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	}
	if commit := s.fault.commit.Load(); commit != nil {
		return driver.ResultNoRows, (*commit)(really)
	}
	return result, really()
}

func openFaulty(t *testing.T, path string) (*bun.DB, *commitFault) {
	t.Helper()
	base, err := sqlite.NewConnector(writerDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	fault := &commitFault{Connector: base}
	pool := sql.OpenDB(fault)
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { pool.Close() })
	if _, err := pool.ExecContext(t.Context(), writerSchema); err != nil {
		t.Fatal(err)
	}
	return bun.NewDB(pool, sqlitedialect.New()), fault
}

// TestCommitInDoubt fails a COMMIT in ways that tell nothing of its outcome.
func TestCommitInDoubt(t *testing.T) {
	t.Parallel()
	eio := errors.New("input/output error")
	for name, c := range map[string]struct {
		commit func(really func() error) error
		want   []int
	}{
		"after it was written":  {func(really func() error) error { return errors.Join(really(), eio) }, []int{1, 2, 3}},
		"before it was written": {func(func() error) error { return eio }, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "w.db")
			db, fault := openFaulty(t, path)
			w := startWriter(t, db, outbox.WriterConfig{GroupTime: time.Hour, GroupMax: 3})
			if err := w.Do(t.Context(), insert(1)); err != nil {
				t.Fatal(err)
			}
			var after atomic.Int32
			counted := func(id int) outbox.Command {
				return func(ctx context.Context, tx *outbox.Tx) error {
					tx.AfterCommit(func() { after.Add(1) })
					return insertRow(ctx, tx, id)
				}
			}
			refused := func(context.Context, *outbox.Tx) error {
				fault.set(c.commit)
				return errBusiness
			}
			// The fourth waits for the next group, and is never run.
			errs := make([]error, 4)
			done := make(chan struct{})
			go func() {
				defer close(done)
				errs = togetherInDoubt(t, w, counted(2), counted(3), refused, counted(4))
			}()
			<-w.Done()
			<-done
			for i, err := range errs[1:] {
				if !errors.Is(err, outbox.ErrInDoubt) || !errors.Is(err, eio) {
					t.Errorf("command %d was answered %v", i, err)
				}
			}
			if err := w.Err(); !errors.Is(err, outbox.ErrInDoubt) {
				t.Errorf("the writer's end is %v", err)
			}
			for _, send := range []func(context.Context, outbox.Command) error{w.Do, w.First} {
				if err := send(t.Context(), insert(5)); !errors.Is(err, outbox.ErrInDoubt) {
					t.Errorf("afterwards a command was answered %v", err)
				}
			}
			if after.Load() != 0 {
				t.Error("an after-commit function was called")
			}
			if got := ledger(t, path); !slices.Equal(got, c.want) {
				t.Errorf("the file holds %v, want %v", got, c.want)
			}
		})
	}
}

// togetherInDoubt is together with the answer of the command that holds the writer before the others.
func togetherInDoubt(t *testing.T, w *outbox.Writer, commands ...outbox.Command) []error {
	t.Helper()
	started, held := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- w.First(context.Background(), func(context.Context, *outbox.Tx) error {
			close(started)
			<-held
			return nil
		})
	}()
	<-started
	answers := make([]chan error, len(commands))
	for i, c := range commands {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- w.Do(context.Background(), c) }()
		for w.Waiting() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	close(held)
	errs := []error{<-first}
	for _, a := range answers {
		errs = append(errs, <-a)
	}
	return errs
}

// TestCommitRefused fails a COMMIT in ways that are known to leave nothing behind.
func TestCommitRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		real error
		want error
	}{
		"full": {fullError(t), outbox.ErrStoreFull},
		"busy": {busyError(t), outbox.ErrStoreBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "w.db")
			db, fault := openFaulty(t, path)
			w := startWriter(t, db, outbox.WriterConfig{GroupTime: time.Hour})
			fault.set(func(func() error) error { return c.real })
			errs := togetherInDoubt(t, w, insert(1), func(context.Context, *outbox.Tx) error { return errBusiness }, insert(2))
			for i, err := range errs {
				if i == 2 && !errors.Is(err, errBusiness) || i != 2 && !errors.Is(err, c.want) {
					t.Errorf("command %d was answered %v", i, err)
				}
			}
			fault.commit.Store(nil)
			if err := w.Do(t.Context(), insert(3)); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if got := ledger(t, path); !slices.Equal(got, []int{3}) {
				t.Errorf("the file holds %v, want [3]", got)
			}
		})
	}
}

func fullError(t *testing.T) error {
	t.Helper()
	db := openWriterDB(t)
	if _, err := db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	_, err := db.ExecContext(t.Context(), "INSERT INTO posted(payload) VALUES (zeroblob(100000))")
	return err
}

func busyError(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.db")
	one, other := openWriterFile(t, path), openWriterFile(t, path)
	tx, err := one.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, err = other.ExecContext(t.Context(), "DELETE FROM ledger")
	return err
}
