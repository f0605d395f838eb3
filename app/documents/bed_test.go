package documents_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite"
)

// orderPlaced declares the event that the tests emit.
const orderPlaced = `---
title: An order was placed
direction: outbound
trust: authoritative
guarantee: at-least-once
boundary: the receiver's 2xx status line
duplicates: a receiver keeps the ids it handled
retry_horizon: retry-horizon
runbook: recover-dead-letters
versions:
  - version: 1
    fields: {order: internal}
    schema:
      type: object
      required: [order]
      properties:
        order: {type: integer}
---
Placed.
`

// bed is the module on a real database.
type bed struct {
	*documents.Module
	db  *sql.DB
	ctx context.Context
}

func newBed(t *testing.T) *bed {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	dsn := "file:" + filepath.Join(t.TempDir(), "posthorn.db") + "?_busy_timeout=2000"
	write, err := sql.Open("sqlite", dsn+"&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	write.SetMaxOpenConns(1)
	if _, err := write.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	read, err := sql.Open("sqlite", dsn+"&_query_only=1")
	if err != nil {
		t.Fatal(err)
	}
	writer, err := outbox.NewWriter(bun.NewDB(write, sqlitedialect.New()), outbox.WriterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close(context.Background()); _ = read.Close(); _ = write.Close() })
	err = writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "order-placed", SchemaVersion: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := records.Load(fstest.MapFS{"integration-events/order-placed.md": {Data: []byte(orderPlaced)}})
	if err != nil {
		t.Fatal(err)
	}
	m := mediator.New(mediator.Config{Writer: writer, Read: bun.NewDB(read, sqlitedialect.New())})
	b := &bed{db: read, Module: documents.New(m, emits.Judge{Records: func() *records.Set { return set }})}
	b.ctx = as(t.Context(), "main", access.Operator)
	return b
}

func as(ctx context.Context, tenant outbox.TenantID, role access.Role) context.Context {
	return access.With(ctx, access.Principal{Actor: "token:test", Tenant: tenant, Role: role})
}

// rows counts everything that a command could have written.
func (b *bed) rows(t *testing.T) (n int) {
	t.Helper()
	err := b.db.QueryRow(`SELECT (SELECT count(*) FROM documents) + (SELECT coalesce(sum(version), 0) FROM documents) +
  (SELECT count(*) FROM outbox_messages) + (SELECT count(*) FROM outbox_deliveries) + (SELECT count(*) FROM posthorn_idempotency)`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ptr[T any](v T) *T { return &v }
