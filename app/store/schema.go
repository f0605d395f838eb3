package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/posthorn/posthorn/outbox"
)

const (
	findMeta       = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'posthorn_meta'`
	readVersion    = `SELECT value FROM posthorn_meta WHERE name = 'schema_version'`
	raiseVersion   = `INSERT INTO posthorn_meta(name, value) VALUES ('schema_version', ?1) ON CONFLICT DO UPDATE SET value = ?1 WHERE value < ?1`
	versionUnknown = -1
)

// querier is a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// schemaVersion reads the version of the contract that the file was written by; 0 when it has none.
func schemaVersion(ctx context.Context, q querier) (int, error) {
	var tables int
	if err := q.QueryRowContext(ctx, findMeta).Scan(&tables); err != nil {
		return versionUnknown, fmt.Errorf("read schema: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	var version int
	if err := q.QueryRowContext(ctx, readVersion).Scan(&version); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return versionUnknown, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// checkVersion refuses a file that this binary may not understand.
func checkVersion(ctx context.Context, q querier, ours int) error {
	version, err := schemaVersion(ctx, q)
	if err != nil {
		return err
	}
	if ours > 0 && version > ours {
		return fmt.Errorf("%w: its schema is version %d, this binary knows version %d; use the newer binary", ErrSchemaNewer, version, ours)
	}
	return nil
}

// probe looks at a file that exists before anything in it is changed, and tells how many commits it has had.
func (f *file) probe(ctx context.Context, opt *Options) (int64, error) {
	connector, err := newConnector(f, probing, opt.BusyTimeout)
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	var encoding string
	if err := db.QueryRowContext(ctx, "PRAGMA encoding").Scan(&encoding); err != nil {
		return 0, fmt.Errorf("look into database: %w", err)
	}
	if !strings.EqualFold(encoding, "UTF-8") {
		return 0, fmt.Errorf("%w: it says %s", ErrEncoding, encoding)
	}
	if err := checkVersion(ctx, db, opt.SchemaVersion); err != nil {
		return 0, err
	}
	if opt.Guest {
		return 0, f.welcome(ctx, db, opt.SchemaVersion)
	}
	return commits(ctx, db)
}

// applySchema brings the tables into the file, in one transaction. It changes nothing in a file that has them.
func applySchema(ctx context.Context, db *sql.DB, opt *Options) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("apply schema: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if err := checkVersion(ctx, tx, opt.SchemaVersion); err != nil {
		return err
	}
	if opt.SchemaVersion > 0 {
		if _, err := outbox.Migrate(ctx, tx, opt.Schema, opt.SchemaVersion, opt.Steps); err != nil {
			return err
		}
		// A schema that does not write the row itself.
		if _, err := tx.ExecContext(ctx, raiseVersion, opt.SchemaVersion); err != nil {
			return fmt.Errorf("write schema version: %w", err)
		}
	} else if opt.Schema != "" {
		if _, err := tx.ExecContext(ctx, opt.Schema); err != nil {
			return fmt.Errorf("apply schema: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("apply schema: %w", err)
	}
	return nil
}
