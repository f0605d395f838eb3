package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Control is the file of Posthorn's own beside a database that belongs to another program. It is attached to every connection, so that its
// tables are found by their names alone, and one COMMIT serves both files.
//
// That COMMIT is atomic in each file, not across them: after a power cut the first file may be ahead of this one, never behind it. Whoever
// changes both sees to it that the next start finds what is missing.
type Control struct {
	// Path is the file.
	Path string
	// Schema is SQL that is applied to it in one transaction; it must leave a file that has it already as it is.
	Schema string
	// Version is the version of Schema.
	Version int
}

const (
	controlName   = "control"
	attachControl = `ATTACH DATABASE ? AS ` + controlName
)

// prepare brings the control file to its schema, and lets go of it.
func (c *Control) prepare(ctx context.Context, opt *Options) (*file, error) {
	f, err := findFile(c.Path, true)
	if err != nil {
		return nil, err
	}
	own := &Options{Path: c.Path, Schema: c.Schema, SchemaVersion: c.Version, BusyTimeout: opt.BusyTimeout}
	if f.info.Size() > 0 {
		if _, err := f.probe(ctx, own); err != nil {
			return nil, fmt.Errorf("open %s: %w", f.path, openError(err))
		}
	}
	pool, err := openPool(ctx, f, writing, 1, opt.BusyTimeout)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path, openError(err))
	}
	return f, errors.Join(applySchema(ctx, pool.DB, own), pool.Close())
}

// attachTo attaches the file to a connection, with the settings that durability rests on, and reads them back.
func (f *file) attachTo(ctx context.Context, conn driver.Conn) error {
	execer, canExec := conn.(driver.ExecerContext)
	queryer, canQuery := conn.(driver.QueryerContext)
	if !canExec || !canQuery {
		return fmt.Errorf("connection %T can attach no file", conn)
	}
	name := driver.NamedValue{Ordinal: 1, Value: f.name() + "?mode=rw"}
	if _, err := execer.ExecContext(ctx, attachControl, []driver.NamedValue{name}); err != nil {
		return fmt.Errorf("attach %s: %w", f.path, err)
	}
	for _, s := range []struct{ pragma, set, want string }{
		{"journal_mode", "", "wal"},
		{"synchronous", "FULL", fullSync},
		{"journal_size_limit", strconv.Itoa(walLimit), strconv.Itoa(walLimit)},
	} {
		if s.set != "" {
			if _, err := execer.ExecContext(ctx, "PRAGMA "+controlName+"."+s.pragma+"="+s.set, nil); err != nil {
				return fmt.Errorf("set %s of %s: %w", s.pragma, f.path, err)
			}
		}
		if got, err := readPragma(ctx, queryer, controlName+"."+s.pragma); err != nil {
			return fmt.Errorf("read setting %s of %s: %w", s.pragma, f.path, err)
		} else if !strings.EqualFold(got, s.want) {
			return fmt.Errorf("%w: %s of %s is %q, must be %q", ErrSetting, s.pragma, f.path, got, s.want)
		}
	}
	return nil
}

// findOwn counts the tables that no guest brings in.
const findOwn = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('posthorn_destinations', 'posthorn_tokens')`

// welcome says whether another program's file is ready for a guest.
func (f *file) welcome(ctx context.Context, db *sql.DB, ours int) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("look into database: %w", err)
	}
	if !strings.EqualFold(mode, "wal") {
		return fmt.Errorf("%w: its journal mode is %s", ErrJournal, mode)
	}
	var own int
	if err := db.QueryRowContext(ctx, findOwn).Scan(&own); err != nil {
		return fmt.Errorf("look into database: %w", err)
	}
	if own > 0 {
		return ErrOwnFile
	}
	version, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	if version < ours {
		return fmt.Errorf("%w: it has version %d, this binary brings version %d", ErrNotInstalled, version, ours)
	}
	return nil
}
