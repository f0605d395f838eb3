package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestStoreFull fills a database up to its limit.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openWriterFile(t, path)
	if _, err := db.ExecContext(t.Context(), "PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	w := startWriter(t, db, outbox.WriterConfig{GroupTime: time.Hour})
	big := func(id int) outbox.Command {
		return func(ctx context.Context, tx *outbox.Tx) error {
			s, err := tx.Stmt(ctx, "INSERT INTO posted(id, payload) VALUES (?, zeroblob(100000))")
			if err != nil {
				return err
			}
			if _, err = s.ExecContext(ctx, id); err != nil {
				return err
			}
			return insertRow(ctx, tx, id)
		}
	}
	hidden := func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(errBusiness, insertRow(ctx, tx, 1), big(5)(ctx, tx)) // behind a constraint
	}
	errs := together(t, w, insert(1), big(2), insert(3), big(4), hidden, insert(6))
	for i, want := range []error{nil, nil, nil, outbox.ErrStoreFull, outbox.ErrStoreFull, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("command %d was answered %v, want %v", i, errs[i], want)
		}
	}
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error { return plain(ctx, tx, "DELETE FROM posted") }); err != nil {
		t.Fatalf("make room: %v", err)
	}
	if err := w.Do(t.Context(), big(7)); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{1, 2, 3, 6, 7}) {
		t.Errorf("the file holds %v", got)
	}
}

func TestStoreBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	other, err := openWriterFile(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(1)); !errors.Is(err, outbox.ErrStoreBusy) {
		t.Errorf("answered %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(2)); err != nil {
		t.Errorf("when it is free again: %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{2}) {
		t.Errorf("the file holds %v, want [2]", got)
	}
}

// TestForgottenRows has a command leave rows open, which keep an old snapshot, while another process writes.
func TestForgottenRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	for i := range 10 {
		if err := w.Do(t.Context(), insert(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		rows, err := tx.Tx.Tx.QueryContext(ctx, "SELECT id FROM ledger") //nolint:rowserrcheck,sqlclosecheck // the mistake under test
		if err != nil {
			return err
		}
		rows.Next()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := openWriterFile(t, path).ExecContext(t.Context(), "DELETE FROM ledger WHERE id < 9"); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(20)); err != nil {
		t.Errorf("answered %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{9, 20}) {
		t.Errorf("the file holds %v, want [9 20]", got)
	}
}

// TestDamagedFile has a command find out that the file is damaged.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openWriterFile(t, path)
	if _, err := db.ExecContext(t.Context(), "INSERT INTO posted(payload) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT zeroblob(700) FROM n"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 40*4096), 20*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
	errs := togetherInDoubt(t, w, insert(1), func(ctx context.Context, tx *outbox.Tx) error { return plain(ctx, tx, "DELETE FROM posted") }, insert(2))
	for i, err := range errs[1:] {
		if !errors.Is(err, outbox.ErrCorrupt) {
			t.Errorf("command %d was answered %v", i, err)
		}
	}
	<-w.Done()
	if err := w.Err(); !errors.Is(err, outbox.ErrCorrupt) {
		t.Errorf("the writer's end is %v", err)
	}
	if got := ledger(t, path); len(got) != 0 {
		t.Errorf("the file holds %v", got)
	}
}

// TestTxAfterItsEnd uses a Tx that was kept, which can change nothing while no command runs.
func TestTxAfterItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	var kept *outbox.Tx
	if err := w.Do(t.Context(), func(_ context.Context, tx *outbox.Tx) error {
		kept = tx
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := plain(t.Context(), kept, "INSERT INTO ledger VALUES (1, 1)"); err == nil {
		t.Error("a Tx wrote after its end")
	}
	if err := w.Do(t.Context(), insert(2)); err != nil {
		t.Fatal(err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{2}) {
		t.Errorf("the file holds %v, want [2]", got)
	}
}

func TestHooksMayPanic(t *testing.T) {
	t.Parallel()
	w := startWriter(t, openWriterDB(t), outbox.WriterConfig{})
	calls := 0
	w.OnCommit(func() { panic("hook") })
	w.OnCommit(func() { calls++ })
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		tx.AfterCommit(func() { panic("after") })
		tx.AfterCommit(func() {
			// The sender's context is free to send again.
			if err := w.Do(t.Context(), insert(2)); err != nil {
				t.Error(err)
			}
		})
		return insertRow(ctx, tx, 1)
	}); err != nil {
		t.Error(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls != 2 {
		t.Errorf("the second hook was called %d times, want 2", calls)
	}
}

func TestBetweenGroups(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
	other := openWriterFile(t, path)
	var order []string
	note := func(what string) outbox.Command {
		return func(ctx context.Context, tx *outbox.Tx) error {
			order = append(order, what)
			return plain(ctx, tx, "INSERT INTO ledger(amount) VALUES (1)")
		}
	}
	errs := sentTogether(t, w,
		func() error { return w.Do(context.Background(), note("queued")) },
		func() error { return w.First(context.Background(), note("first")) },
		func() error {
			return w.Between(context.Background(), func(ctx context.Context) error {
				order = append(order, "between")
				if err := w.Do(ctx, note("nested")); !errors.Is(err, outbox.ErrNestedCommand) {
					t.Errorf("a command inside was answered %v", err)
				}
				_, err := other.ExecContext(ctx, "INSERT INTO ledger(amount) VALUES (1)")
				return err
			})
		},
		func() error { return w.First(context.Background(), note("second")) })
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if got := strings.Join(order, " "); got != "first between second queued" {
		t.Errorf("the order was %s", got)
	}
	if err := w.Between(t.Context(), func(context.Context) error { return errBusiness }); !errors.Is(err, errBusiness) {
		t.Errorf("answered %v", err)
	}
	if err := w.Between(t.Context(), func(context.Context) error { panic("between") }); !errors.Is(err, outbox.ErrCommandPanicked) {
		t.Errorf("answered %v", err)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	w := startWriter(t, openWriterDB(t), outbox.WriterConfig{GroupTime: time.Hour, GroupMax: 5})
	var commits atomic.Int32
	w.OnCommit(func() { commits.Add(1) })
	var commands []outbox.Command
	for i := range 20 {
		commands = append(commands, insert(i))
	}
	if err := errors.Join(together(t, w, commands...)...); err != nil {
		t.Error(err)
	}
	if got := commits.Load(); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
	w = startWriter(t, openWriterDB(t), outbox.WriterConfig{GroupTime: 1})
	commits.Store(0)
	w.OnCommit(func() { commits.Add(1) })
	if err := errors.Join(together(t, w, commands...)...); err != nil {
		t.Error(err)
	}
	if got := commits.Load(); got != 20 {
		t.Errorf("%d commits, want 20", got)
	}
}

// TestCloseDrains closes a writer while commands wait.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "w.db")
		w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
		started, held := make(chan struct{}), make(chan struct{})
		answers := make(chan error, 3)
		go func() {
			answers <- w.Do(context.Background(), func(ctx context.Context, tx *outbox.Tx) error {
				close(started)
				<-held
				return insertRow(ctx, tx, 1)
			})
		}()
		<-started
		for i := range 2 {
			go func() { answers <- w.Do(context.Background(), insert(2+i)) }()
		}
		for w.Waiting() < 2 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		closing := make(chan error, 1)
		go func() { closing <- w.Close(ctx) }()
		want := []int{1, 2, 3}
		if !patient {
			cancel()
			if err := <-closing; !errors.Is(err, context.Canceled) {
				t.Errorf("an impatient Close answered %v", err)
			}
			want = []int{1}
		}
		close(held)
		refused := 0
		for range 3 {
			if err := <-answers; errors.Is(err, outbox.ErrClosed) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		<-w.Done()
		cancel()
		if err := w.Err(); err != nil {
			t.Errorf("the end of a closed writer is %v", err)
		}
		if got := ledger(t, path); !slices.Equal(got, want) || len(want)+refused != 3 {
			t.Errorf("the file holds %v, want %v; %d refused", got, want, refused)
		}
	}
}

// TestDeadlines runs on the bubble's clock.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "w.db")
		db := openWriterFile(t, path)
		w, err := outbox.NewWriter(db, outbox.WriterConfig{})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		go func() {
			if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
				close(started)
				time.Sleep(time.Minute)
				return insertRow(ctx, tx, 1)
			}); err != nil {
				t.Errorf("a command that was started in time: %v", err)
			}
		}()
		<-started
		from := time.Now()
		if err := w.Do(t.Context(), insert(2)); !errors.Is(err, outbox.ErrDeadline) || time.Since(from) != 5*time.Second {
			t.Errorf("by the default deadline: %v after %v", err, time.Since(from))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		from = time.Now()
		err = w.Do(ctx, insert(3))
		if !errors.Is(err, outbox.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || time.Since(from) != time.Second {
			t.Errorf("by the caller's deadline: %v after %v", err, time.Since(from))
		}
		if err := w.First(t.Context(), insert(4)); err != nil {
			t.Errorf("a first command: %v", err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := ledger(t, path); !slices.Equal(got, []int{1, 4}) {
			t.Errorf("the file holds %v, want [1 4]", got)
		}
		db.Close()
	})
}
