package outbox

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// foreigner opens the database as another program does.
func foreigner(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

const foreignInsert = `INSERT INTO outbox_messages(type, payload) VALUES ('thing-done', '{}')`

// watched is a dispatcher that nothing but the poll for foreign commits wakes.
func watched(t *testing.T, b *bed, r *recorder) *Dispatcher {
	t.Helper()
	return b.dispatcher(t, Config{Poll: time.Hour, Foreign: ForeignPoll{Busy: time.Millisecond, Idle: 20 * time.Millisecond}}, handler("a", "*", r))
}

func TestForeignCommitWakesTheDispatcher(t *testing.T) {
	t.Parallel()
	b, r := newBed(t, "thing-done"), &recorder{}
	watched(t, b, r)
	db := foreigner(t, b.path)
	for n := 1; n <= 20; n++ {
		if _, err := db.Exec(foreignInsert); err != nil {
			t.Fatal(err)
		}
		eventually(t, "delivery of a foreign message", func() bool { return r.count() == n })
	}
}

func TestForeignCommitOfAnotherProcess(t *testing.T) {
	t.Parallel()
	b, r := newBed(t, "thing-done"), &recorder{}
	watched(t, b, r)
	python := `import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10)
for n in range(10):
    with db:
        db.execute("INSERT INTO outbox_messages(type, payload) VALUES (?, ?)", ("thing-done", "{}"))
`
	if out, err := exec.Command("python3", "-c", python, b.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "delivery of what another process staged", func() bool { return r.count() == 10 })
}

func TestLookTellsOwnCommitsFromForeignOnes(t *testing.T) {
	t.Parallel()
	b, r := newBed(t, "thing-done"), &recorder{}
	d := watched(t, b, r)
	db := foreigner(t, b.path)
	if _, err := db.Exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := db.Exec(`INSERT INTO orders DEFAULT VALUES`); err != nil {
			t.Fatal(err)
		}
	}
	var f foreign
	if err := f.look(t.Context(), d.config.Writer); err != nil || !f.changed {
		t.Fatalf("looked: %v, %v", f, err)
	}
	if err := f.look(t.Context(), d.config.Writer); err != nil || f.changed {
		t.Errorf("a second look sees a change: %v, %v", f, err)
	}
	b.stage(t, event(1))
	if err := f.look(t.Context(), d.config.Writer); err != nil || f.changed {
		t.Errorf("the writer's own commit is seen as foreign: %v, %v", f, err)
	}
	eventually(t, "delivery", func() bool { return r.count() == 1 })
}

func TestRestoreOverAnOpenDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("python3 is needed: make needs")
	}
	b, r := newBed(t, "thing-done"), &recorder{}
	watched(t, b, r)
	copied := filepath.Join(t.TempDir(), "copy.db")
	db := foreigner(t, b.path)
	if _, err := db.Exec(foreignInsert); err != nil {
		t.Fatal(err)
	}
	eventually(t, "delivery", func() bool { return r.count() == 1 })
	if _, err := db.Exec(`VACUUM INTO '` + copied + `'`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := db.Exec(foreignInsert); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "delivery", func() bool { return r.count() == 4 })
	eventually(t, "settling", func() bool {
		for _, row := range b.rows(t) {
			if row.State != "dispatched" {
				return false
			}
		}
		return true
	})
	// The online backup API, in the other direction.
	python := `import sqlite3, sys
sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2], timeout=10))
`
	if out, err := exec.Command("python3", "-c", python, copied, b.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case <-b.writer.Done():
	case <-time.After(time.Minute):
		t.Fatal("the restore was not noticed")
	}
	if err := b.writer.Err(); !errors.Is(err, ErrRewound) {
		t.Errorf("the writer stopped by %v", err)
	}
	if err := b.writer.Do(context.Background(), func(context.Context, *Tx) error { return nil }); !errors.Is(err, ErrRewound) {
		t.Errorf("a command was answered %v", err)
	}
	if _, err := os.Stat(b.path); err != nil {
		t.Error(err)
	}
}
