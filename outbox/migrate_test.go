package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modernc.org/sqlite"
)

// dieAt names the statement at which a migrating process is killed; migrateFile the database that it migrates.
const (
	dieAt       = "POSTHORN_TEST_DIE_AT"
	migrateFile = "POSTHORN_TEST_MIGRATE"
)

// died is the exit code of a process that was killed at its statement.
const died = 9

// Every statement of the steps is followed by a call of this function, at which the process can be ended without good-bye.
func init() {
	sqlite.MustRegisterScalarFunction("posthorn_test_reached", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if fmt.Sprint(args[0]) == os.Getenv(dieAt) {
			os.Exit(died)
		}
		return args[0], nil
	})
}

// laterSteps are migrations as later versions may have them.
func laterSteps() (steps []Step, statements int) {
	n := 0
	for i, list := range [][]string{
		{`ALTER TABLE outbox_lanes ADD COLUMN rate REAL`, `DROP TRIGGER outbox_messages_kept`, `UPDATE outbox_lanes SET rate = 1`},
		{`CREATE TABLE outbox_extra (id INTEGER PRIMARY KEY) STRICT`, `INSERT INTO outbox_extra SELECT seq FROM outbox_messages`, `DROP INDEX outbox_inbox_purged`,
			`ALTER TABLE outbox_extra ADD COLUMN note TEXT`},
	} {
		text := ""
		for _, statement := range list {
			text += fmt.Sprintf("%s;\nSELECT posthorn_test_reached(%d);\n", statement, n)
			n++
		}
		steps = append(steps, Step{To: i + 2, SQL: text})
	}
	return steps, n
}

func migrateTo(db *sql.DB, version int, steps []Step) (from int, err error) {
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	if from, err = Migrate(ctx, tx, Schema, version, steps); err != nil {
		return from, err
	}
	return from, tx.Commit()
}

// migrateAndDie is what the test binary does when it is started to migrate.
func migrateAndDie(path string) {
	db, err := sql.Open("sqlite", "file:"+path+dsnOptions)
	if err == nil {
		steps, _ := laterSteps()
		_, err = migrateTo(db, 3, steps)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// released is a database of a released version with a message in it.
func released(t *testing.T, version int) (path string, db *sql.DB) {
	t.Helper()
	contract, err := os.ReadFile(filepath.Join("testdata", "contract", fmt.Sprintf("%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "outbox.db")
	if db, err = sql.Open("sqlite", "file:"+path+dsnOptions); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(string(contract) + `INSERT INTO outbox_types VALUES ('thing-done', 1); INSERT INTO outbox_lanes VALUES ('a', 1, 'paused');` + foreignInsert); err != nil {
		t.Fatal(err)
	}
	return path, db
}

// objects lists what a database consists of.
func objects(t *testing.T, db *sql.DB) (list []string) {
	t.Helper()
	rows, err := db.Query(`SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var object string
		if err := rows.Scan(&object); err != nil {
			t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

func TestEveryReleasedContractIsMigrated(t *testing.T) {
	t.Parallel()
	fresh := newBed(t)
	for version := 1; version <= SchemaVersion; version++ {
		path, db := released(t, version)
		if err := Install(t.Context(), db); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if got, want := objects(t, db), objects(t, fresh.read.DB); !slices.Equal(got, want) {
			t.Errorf("version %d, migrated, is not what a new database is:\n%s\nwant\n%s", version, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if err := Install(t.Context(), db); err != nil {
			t.Errorf("version %d, again: %v", version, err)
		}
		_ = db.Close()
		r := &recorder{}
		b := openBed(t, path)
		b.dispatcher(t, Config{}, handler("b", "*", r))
		b.stage(t, event(1))
		eventually(t, "delivery in the migrated database", func() bool { return r.count() == 1 })
	}
	if _, err := os.Stat(filepath.Join("testdata", "contract", fmt.Sprintf("%d.sql", SchemaVersion))); err != nil {
		t.Errorf("the contract of this version is not kept: %v", err)
	}
}

func TestStepsAreNumbered(t *testing.T) {
	t.Parallel()
	steps, err := Steps()
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != SchemaVersion-1 {
		t.Errorf("%d migrations lead to version %d", len(steps), SchemaVersion)
	}
}

func TestMigrationKilledAtEachStatement(t *testing.T) {
	t.Parallel()
	_, statements := laterSteps()
	steps, _ := laterSteps()
	for at := range statements {
		path, db := released(t, 1)
		before := objects(t, db)
		kill := exec.Command(os.Args[0])
		kill.Env = append(os.Environ(), dieAt+"="+fmt.Sprint(at), migrateFile+"="+path)
		out, _ := kill.CombinedOutput()
		if code := kill.ProcessState.ExitCode(); code != died {
			t.Fatalf("killed at statement %d: exit %d, %s", at, code, out)
		}
		if got := objects(t, db); !slices.Equal(got, before) {
			t.Fatalf("killed at statement %d, it left %v", at, got)
		}
		if version, err := Version(t.Context(), db); version != 1 || err != nil {
			t.Fatalf("killed at statement %d: version %d, %v", at, version, err)
		}
		if from, err := migrateTo(db, 3, steps); from != 1 || err != nil {
			t.Fatalf("resumed: from %d, %v", from, err)
		}
		if version, err := Version(t.Context(), db); version != 3 || err != nil {
			t.Fatalf("resumed: version %d, %v", version, err)
		}
		var copied int
		if err := db.QueryRow(`SELECT count(*) FROM outbox_extra e JOIN outbox_messages m ON m.seq = e.id`).Scan(&copied); err != nil || copied != 1 {
			t.Errorf("resumed: %d rows, %v", copied, err)
		}
		// Whoever is at version 3 knows no way back.
		if err := Install(t.Context(), db); !errors.Is(err, ErrSchemaNewer) {
			t.Errorf("a downgrade: %v", err)
		}
	}
}

func TestMigrationTakesOnlyTheStepsThatAreMissing(t *testing.T) {
	t.Parallel()
	steps, _ := laterSteps()
	_, db := released(t, 1)
	for _, tt := range []struct{ to, from int }{{2, 1}, {2, 2}, {3, 2}, {3, 3}} {
		if from, err := migrateTo(db, tt.to, steps); from != tt.from || err != nil {
			t.Fatalf("to %d: from %d, %v", tt.to, from, err)
		}
	}
	empty, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "new.db")+dsnOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = empty.Close() }()
	if from, err := migrateTo(empty, 3, steps); from != 0 || err != nil {
		t.Fatalf("a new database: from %d, %v", from, err)
	}
	if version, err := Version(t.Context(), empty); version != 3 || err != nil {
		t.Errorf("a new database: version %d, %v", version, err)
	}
}
