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
//go:generate sh -c "cp schema.sql testdata/contract/1.sql"
//go:embed schema.sql
var Schema string

// SchemaVersion is the version of the contract that this package reads and writes.
const SchemaVersion = 1

// ErrSchemaNewer: the database was upgraded by a later version of this package, which this one cannot serve.
var ErrSchemaNewer = errors.New("the database has a newer schema than this program")

// Install brings the outbox's tables into the database, or an earlier version of them to this one, in one transaction.
func Install(ctx context.Context, db *sql.DB) error {
	steps, err := Steps()
	if err != nil {
		return fmt.Errorf("install outbox schema: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("install outbox schema: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := Migrate(ctx, tx, Schema, SchemaVersion, steps); err != nil {
		return fmt.Errorf("install outbox schema: %w", err)
	}
	return tx.Commit()
}
