package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun"
)

// Session is the caller's open transaction: *Tx, bun.Tx or *sql.Tx. A bare *sql.DB is not one, since a message staged by a commit of
// its own could be lost or sent for a change that was rolled back (P11).
type Session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Commit() error
	Rollback() error
}

const insertMessage = `INSERT INTO outbox_messages
  (id, kind, type, schema_version, tenant, occurred_at, deliver_at, ordering_key, content_type, payload, payload_sha256, headers)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Stage writes a message in the caller's transaction: it becomes visible, and due, with that commit, and vanishes with its rollback.
// It returns the message as staged, with its defaults filled in. What the schema does not take is a *Refusal.
//
// Inside a Command the statement is prepared once for the writer's connection; in a transaction of one's own it is prepared anew for
// each message, which costs about as much as the insert itself.
func Stage(ctx context.Context, session Session, m Message) (Message, error) {
	now := time.Now()
	if tx, ok := session.(*Tx); ok {
		now = tx.Now
	}
	m = m.filled(now)
	headers, err := encodeHeaders(m.Headers)
	if err != nil {
		return m, fmt.Errorf("stage message: %w", err)
	}
	args := [...]any{
		string(m.ID), string(m.Kind), m.Type, m.SchemaVersion, string(m.Tenant), micros(m.OccurredAt), optionalTime(m.DeliverAt),
		optionalText(m.OrderingKey), m.ContentType, storedPayload(m), m.PayloadSHA256[:], headers,
	}
	result, err := execIn(ctx, session, insertMessage, args[:])
	if err != nil {
		return m, fmt.Errorf("stage message: %w", refusalOf(err))
	}
	if m.Seq, err = result.LastInsertId(); err != nil {
		return m, fmt.Errorf("stage message: %w", err)
	}
	return m, nil
}

// execIn runs a statement on the session's own transaction. bun.Tx formats arguments into the text of the statement, which would
// turn bytes into a literal; the *sql.Tx inside binds them.
func execIn(ctx context.Context, session Session, query string, args []any) (sql.Result, error) {
	switch tx := session.(type) {
	case *Tx:
		stmt, err := tx.Stmt(ctx, query)
		if err != nil {
			return nil, err
		}
		return stmt.ExecContext(ctx, args...)
	case bun.Tx:
		return tx.Tx.ExecContext(ctx, query, args...)
	case *bun.Tx:
		return tx.Tx.ExecContext(ctx, query, args...)
	default:
		return session.ExecContext(ctx, query, args...)
	}
}

// storedPayload keeps JSON as text, so that people and SQL functions can read it, and everything else as bytes. Both are returned as given.
func storedPayload(m Message) any {
	if strings.HasPrefix(m.ContentType, "application/json") && utf8.Valid(m.Payload) && json.Valid(m.Payload) {
		return string(m.Payload)
	}
	return m.Payload
}

func optionalTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}
