package outbox

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

// Schema is the outbox's part of the database contract: tables, triggers, views and indexes for SQLite 3.37 and later. It may be
// run again on a database that has it.
//
//go:generate sh -c "sed -n '/^-- outbox: begin/,/^-- outbox: end/p' ../schema.sql > schema.sql"
//go:embed schema.sql
var Schema string

// SchemaVersion is the version of the contract that this package reads and writes.
const SchemaVersion = 1

// ErrSchemaNewer: the database was upgraded by a later version of this package, which this one cannot serve.
var ErrSchemaNewer = errors.New("the database has a newer schema than this program")

// Install brings the outbox's tables into the database, in one transaction.
func Install(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("install outbox schema: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, Schema); err != nil {
		return fmt.Errorf("install outbox schema: %w", err)
	}
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT value FROM posthorn_meta WHERE name = 'schema_version'`).Scan(&version); err != nil {
		return fmt.Errorf("install outbox schema: read version: %w", err)
	}
	if version > SchemaVersion {
		return fmt.Errorf("install outbox schema: version %d, this program knows %d: %w", version, SchemaVersion, ErrSchemaNewer)
	}
	return tx.Commit()
}
