package guest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// LeastSQLite is the earliest version with which a program can write to a database that has the outbox.
const LeastSQLite = "3.37.0"

var (
	// ErrMissing: there is no such file.
	ErrMissing = errors.New("there is no database file")
	// ErrNotADatabase: the file is encrypted, damaged, or something else.
	ErrNotADatabase = errors.New("the file is encrypted or is not a database")
	// ErrEncoding: text is kept as UTF-16.
	ErrEncoding = errors.New("the database keeps text as UTF-16; Posthorn needs UTF-8")
	// ErrJournal: the database is not in WAL mode.
	ErrJournal = errors.New("the database is not in WAL mode")
	// ErrNetwork: the file lies on a network share.
	ErrNetwork = errors.New("the database lies on a network share, where SQLite's WAL does not work")
	// ErrNames: the program has tables of its own under names of the contract.
	ErrNames = errors.New("the database has objects of its own under Posthorn's names")
	// ErrBusy: another program holds the database.
	ErrBusy = errors.New("another program holds the database")
	// ErrNotInstalled: there is no outbox to take away.
	ErrNotInstalled = errors.New("the database has no outbox")
	// ErrUnfinished: there are deliveries that nobody would make any more.
	ErrUnfinished = errors.New("there are unfinished deliveries")
	// ErrOwnFile: it is Posthorn's own database.
	ErrOwnFile = errors.New("this is Posthorn's own database, not another program's")
)

// resolve makes one name of all names of a database file.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrMissing, path)
	}
	if err != nil {
		return "", fmt.Errorf("find database: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find database: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is no regular file", ErrNotADatabase, path)
	}
	if onNetwork(path) {
		return "", fmt.Errorf("%w: %s", ErrNetwork, path)
	}
	return path, nil
}

// openFile opens a database as it is: no setting of the file is changed.
func openFile(ctx context.Context, path string) (*sql.DB, error) {
	q := url.Values{"mode": {"rw"}, "_busy_timeout": {"5000"}, "_txlock": {"immediate"}, "_dqs": {"0"}, "_defensive": {"1"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(1)
	var objects int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, named(err))
	}
	return db, nil
}

// named gives an error of SQLite the name that a caller can ask for.
func named(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", ErrNotADatabase, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// object is a table, index, trigger or view.
type object struct{ kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

const listObjects = `SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`

func readObjects(ctx context.Context, db *sql.DB) ([]object, error) {
	rows, err := db.QueryContext(ctx, listObjects)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", named(err))
	}
	defer func() { _ = rows.Close() }()
	var list []object
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name); err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		list = append(list, o)
	}
	return list, rows.Err()
}

// contract lists what a schema makes, in the order in which it does.
func contract(ctx context.Context, schema string) ([]object, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	return readObjects(ctx, db)
}

func pragma(ctx context.Context, db *sql.DB, statement string) (string, error) {
	var value string
	if err := db.QueryRowContext(ctx, "PRAGMA "+statement).Scan(&value); err != nil {
		return "", fmt.Errorf("read %s: %w", statement, named(err))
	}
	return strings.ToLower(value), nil
}
