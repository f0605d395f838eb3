package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/outbox"
	"go.uber.org/goleak"
	"modernc.org/sqlite"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHelper); path != "" {
		holdLock(path)
		return
	}
	goleak.VerifyTestMain(m)
}

const testSchema = `
CREATE TABLE IF NOT EXISTS posthorn_meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, body BLOB) STRICT;`

func testOptions(t *testing.T, path string) Options {
	return Options{
		Path: path, Create: true, Schema: testSchema, SchemaVersion: 1,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func openStore(t *testing.T, opt Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t *testing.T, s *Store, query string) {
	t.Helper()
	if err := s.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		_, err := tx.Tx.ExecContext(ctx, query)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func readInt(t *testing.T, db querier, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// foreignDB makes a file by plain SQLite, as another program would.
func foreignDB(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

func TestOpenCreates(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "deep", "a folder?#%41é")
	path := filepath.Join(folder, "data #1?mode=memory.db")
	opt := testOptions(t, path)
	s, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "INSERT INTO note(body) VALUES (x'01')")
	for name, want := range map[string]fs.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, folder: 0o700 | fs.ModeDir, filepath.Dir(folder): 0o700 | fs.ModeDir} {
		info, err := os.Stat(name)
		if err != nil {
			t.Errorf("%v", err)
		} else if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	if got := readInt(t, s.Read, "PRAGMA auto_vacuum"); got != 2 {
		t.Errorf("auto_vacuum is %d, want 2", got)
	}
	if got := readInt(t, s.Read, readVersion); got != 1 {
		t.Errorf("the schema's version is %d, want 1", got)
	}
	if err := s.Integrity(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("the WAL still holds %d bytes", info.Size())
	}
	opt.Create = false
	s = openStore(t, opt)
	if got := readInt(t, s.Read, "SELECT count(*) FROM note"); got != 1 {
		t.Errorf("%d notes after reopening, want 1", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		opt  func(*Options)
		want error
	}{
		{"nothing there", func(*testing.T, string) {}, func(o *Options) { o.Create = false }, ErrMissing},
		{"UTF-16", func(t *testing.T, path string) {
			foreignDB(t, path, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE a(b)")
		}, nil, ErrEncoding},
		{"newer schema", func(t *testing.T, path string) {
			foreignDB(t, path, testSchema+"INSERT INTO posthorn_meta VALUES ('schema_version', 2)")
		}, nil, ErrSchemaNewer},
		{"no database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is a letter, not a database. ", 200)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil, ErrIntegrity},
		{"damaged schema page", func(t *testing.T, path string) {
			foreignDB(t, path, "CREATE TABLE a(b); CREATE TABLE c(d)")
			damage(t, path, 100, 3900)
		}, nil, ErrIntegrity},
		{"broken schema", func(*testing.T, string) {}, func(o *Options) { o.Schema += "CREATE TABLE half (id); CREATE GARBAGE" }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "p.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			opt := testOptions(t, path)
			if c.opt != nil {
				c.opt(&opt)
			}
			s, err := Open(t.Context(), opt)
			if err == nil {
				s.Close(t.Context())
				t.Fatal("it was opened")
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("answered %v, want %v", err, c.want)
			}
			after, err := os.ReadFile(path)
			if opt.Create == (err != nil) {
				t.Errorf("the file afterwards: %v", err)
			}
			if len(before) > 0 && string(before) != string(after) {
				t.Error("the file was changed")
			}
			if c.name == "broken schema" {
				opt.Schema = testSchema
				s := openStore(t, opt)
				if got := readInt(t, s.Read, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"); got != 0 {
					t.Error("half of a schema was left in the file")
				}
			}
		})
	}
}

// damage overwrites bytes of a file that no connection has open.
func damage(t *testing.T, path string, from, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(n)), from); err != nil {
		t.Fatal(err)
	}
}

func TestOpenLeavesForeignFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	foreignDB(t, path, "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (7)")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	opt := testOptions(t, path)
	opt.Create = false
	s := openStore(t, opt)
	if got := readInt(t, s.Read, "SELECT id FROM orders"); got != 7 {
		t.Errorf("the application's row is %d", got)
	}
	if got := readInt(t, s.Read, "PRAGMA auto_vacuum"); got != 0 {
		t.Errorf("auto_vacuum became %d", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the application's file has mode %v (%v)", info.Mode(), err)
	}
}

func TestReadersOnlyRead(t *testing.T) {
	t.Parallel()
	opt := testOptions(t, filepath.Join(t.TempDir(), "p.db"))
	opt.Readers = 1000
	s := openStore(t, opt)
	if got := s.Read.Stats().MaxOpenConnections; got > runtime.GOMAXPROCS(0) {
		t.Errorf("%d readers", got)
	}
	if _, err := s.Read.ExecContext(t.Context(), "INSERT INTO note(body) VALUES (x'01')"); err == nil {
		t.Error("a reader wrote")
	}
	tx, err := s.Read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "DELETE FROM note"); err == nil {
		t.Error("a reader wrote in a transaction")
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

// TestSettingsAreReadBack opens connections that lack one setting each.
func TestSettingsAreReadBack(t *testing.T) {
	t.Parallel()
	opt := testOptions(t, filepath.Join(t.TempDir(), "p.db"))
	s := openStore(t, opt)
	for _, c := range []struct {
		setting, from, to string
		use               use
	}{
		{"synchronous", "_synchronous=FULL", "_synchronous=NORMAL", writing},
		{"synchronous", "_synchronous=FULL", "_pragma=synchronous%28FULLL%29", writing},
		{"foreign_keys", "_foreign_keys=1", "_foreign_keys=0", writing},
		{"trusted_schema", "trusted_schema%280%29", "trustd_schema%280%29", upkeep},
		{"cell_size_check", "cell_size_check%281%29", "cell_size_check%280%29", reading},
		{"journal_size_limit", "journal_size_limit%28", "journal_size_limt%28", writing},
		{"wal_autocheckpoint", "wal_autocheckpoint%280%29", "wal_autocheckpoint%281000%29", writing},
		{"busy_timeout", "_busy_timeout=5000", "_busy_timeout=1", writing},
		{"query_only", "_query_only=1", "_query_only=0", reading},
		{"query_only", "_txlock=immediate", "_query_only=1", writing},
	} {
		f := *s.file
		f.fresh = false
		good := f.dsn(c.use, 5_000_000_000)
		dsn := strings.Replace(good, c.from, c.to, 1)
		if dsn == good {
			t.Errorf("%s is not in %s", c.from, good)
			continue
		}
		base, err := sqlite.NewConnector(dsn)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&connector{base, &f, c.use, 5_000_000_000}).Connect(t.Context())
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), c.setting) {
			t.Errorf("%s: answered %v", c.to, err)
		}
	}
}

func TestSchemaStays(t *testing.T) {
	t.Parallel()
	opt := testOptions(t, filepath.Join(t.TempDir(), "p.db"))
	s := openStore(t, opt)
	write(t, s, "INSERT INTO note(body) VALUES (x'01')")
	version := readInt(t, s.Read, "PRAGMA schema_version")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, opt)
	if got := readInt(t, s.Read, "PRAGMA schema_version"); got != version {
		t.Errorf("opening again changed the schema: %d became %d", version, got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	opt.SchemaVersion = 3
	s = openStore(t, opt)
	if got := readInt(t, s.Read, readVersion); got != 3 {
		t.Errorf("the version is %d, want 3", got)
	}
}

func TestIntegrityFindsDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	opt := testOptions(t, path)
	s := openStore(t, opt)
	write(t, s, "INSERT INTO note(body) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT randomblob(700) FROM n")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	damage(t, path, 20*4096, 4096)
	s = openStore(t, opt)
	if err := s.Integrity(t.Context()); !errors.Is(err, ErrIntegrity) {
		t.Errorf("answered %v", err)
	}
}

func TestVerifyNotices(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(path string) error{
		"database removed": os.Remove,
		"database replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
		"WAL removed": func(path string) error { return os.Remove(path + "-wal") },
		"WAL replaced": func(path string) error {
			return errors.Join(os.Rename(path+"-wal", path+".old"), os.WriteFile(path+"-wal", nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "p.db")
			s := openStore(t, testOptions(t, path))
			write(t, s, "INSERT INTO note(body) VALUES (x'01')")
			if err := s.Verify(); err != nil {
				t.Fatal(err)
			}
			if err := act(path); err != nil {
				t.Fatal(err)
			}
			err := s.Verify()
			if !errors.Is(err, ErrReplaced) {
				t.Fatalf("answered %v", err)
			}
			if strings.HasPrefix(name, "database") {
				connector, err := newConnector(s.file, reading, 5_000_000_000)
				if err != nil {
					t.Fatal(err)
				}
				if conn, err := connector.Connect(t.Context()); !errors.Is(err, ErrReplaced) {
					if err == nil {
						conn.Close()
					}
					t.Errorf("a new connection was answered %v", err)
				}
			}
			s.Writer.Fail(err)
			if err := s.Writer.Do(t.Context(), func(context.Context, *outbox.Tx) error { return nil }); !errors.Is(err, ErrReplaced) {
				t.Errorf("the writer answered %v", err)
			}
		})
	}
}

// TestWALStaysShort keeps the writer busy without a pause, which is when a WAL is never begun anew by itself.
func TestWALStaysShort(t *testing.T) {
	t.Parallel()
	opt := testOptions(t, filepath.Join(t.TempDir(), "p.db"))
	opt.CheckpointPages = 25
	s := openStore(t, opt)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for s.Writer.Written() < 1500 {
				if err := s.Writer.Do(context.Background(), func(ctx context.Context, tx *outbox.Tx) error {
					_, err := tx.Tx.ExecContext(ctx, "INSERT INTO note(body) VALUES (zeroblob(9000))")
					return err
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	info, err := os.Stat(s.Path() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if frames := info.Size() / 4120; frames > 750 {
		t.Errorf("the WAL has grown to %d frames of 1,500", frames)
	}
}
