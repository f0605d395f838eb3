package outbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

//go:embed migrations
var migrationFiles embed.FS

// Step is one numbered migration: it brings a database from the version before To to To.
type Step struct {
	To  int
	SQL string
}

// Steps returns the migrations of the outbox's part of the contract, in order.
func Steps() ([]Step, error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	var steps []Step
	for _, entry := range entries {
		name, isSQL := strings.CutSuffix(entry.Name(), ".sql")
		if !isSQL {
			continue
		}
		number, _, _ := strings.Cut(name, "-")
		to, err := strconv.Atoi(number)
		if err != nil || to != len(steps)+2 {
			return nil, fmt.Errorf("read migrations: %s is not number %d", entry.Name(), len(steps)+2)
		}
		text, err := migrationFiles.ReadFile("migrations/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		steps = append(steps, Step{To: to, SQL: string(text)})
	}
	return steps, nil
}

const (
	findMeta     = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'posthorn_meta'`
	readVersion  = `SELECT value FROM posthorn_meta WHERE name = 'schema_version'`
	writeVersion = `UPDATE posthorn_meta SET value = ? WHERE name = 'schema_version'`
)

// Version reads which version of the contract a database has; 0: it has none.
func Version(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version int, err error) {
	var tables int
	if err := q.QueryRowContext(ctx, findMeta).Scan(&tables); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	if err := q.QueryRowContext(ctx, readVersion).Scan(&version); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// Migrate brings a database to a version of a schema, in a transaction of the caller's, which should be an immediate one: first the steps that it
// lacks, then the schema itself, which must leave a database that has it as it is. It answers the version that was there. A database that has the
// version already is not written to, and one with a later version is refused: ErrSchemaNewer.
func Migrate(ctx context.Context, tx *sql.Tx, schema string, version int, steps []Step) (from int, err error) {
	if from, err = Version(ctx, tx); err != nil {
		return from, err
	}
	if from > version {
		return from, fmt.Errorf("%w: its schema is version %d, this program knows version %d", ErrSchemaNewer, from, version)
	}
	for _, step := range steps {
		if from == 0 || step.To <= from || step.To > version {
			continue
		}
		if _, err := tx.ExecContext(ctx, step.SQL); err != nil {
			return from, fmt.Errorf("migrate to version %d: %w", step.To, err)
		}
	}
	// A database of this version gets what an unreleased program of the same version did not have yet.
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return from, fmt.Errorf("apply schema: %w", err)
	}
	if from == version {
		return from, nil
	}
	if _, err := tx.ExecContext(ctx, writeVersion, version); err != nil {
		return from, fmt.Errorf("write schema version: %w", err)
	}
	return from, nil
}
