package emits

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// Known is a message that was staged before.
type Known struct {
	ID         outbox.MessageID
	Type       string
	Deliveries int
}

// FindAll looks for messages that were staged before under ids that callers gave. It returns nil when none was, all of them when each
// was with equal content, and otherwise refuses: an id stands for one message for ever.
func FindAll(ctx context.Context, tx *outbox.Tx, tenant outbox.TenantID, path string, messages []outbox.Message) ([]Known, error) {
	var known []Known
	given := map[outbox.MessageID]bool{}
	first := ""
	for i, m := range messages {
		if m.ID == "" {
			continue
		}
		at := path
		if path != "" {
			at += "/" + strconv.Itoa(i)
		}
		if given[m.ID] {
			return nil, Duplicate(at + "/id")
		}
		given[m.ID] = true
		k, err := find(ctx, tx, tenant, at, m)
		if err != nil {
			return nil, err
		}
		if k != nil {
			known = append(known, *k)
			if first == "" {
				first = at + "/id"
			}
		}
	}
	if len(known) > 0 && len(known) < len(messages) {
		return nil, Duplicate(first)
	}
	return known, nil
}

const findMessage = `SELECT kind, type, schema_version, coalesce(deliver_at, 0), coalesce(ordering_key, ''), content_type, CAST(payload AS BLOB),
  (SELECT count(*) FROM outbox_deliveries d WHERE d.seq = m.seq AND d.resend_of IS NULL)
FROM outbox_messages m WHERE tenant = ? AND id = ?`

// find returns the message staged under m's id, nil when there is none, and refuses when its content differs.
func find(ctx context.Context, tx *outbox.Tx, tenant outbox.TenantID, path string, m outbox.Message) (*Known, error) {
	stmt, err := tx.Stmt(ctx, findMessage)
	if err != nil {
		return nil, fmt.Errorf("find message: %w", err)
	}
	k := Known{ID: m.ID}
	var kind, key, content string
	var version int
	var deliver, want int64
	var payload []byte
	err = stmt.QueryRowContext(ctx, string(tenant), string(m.ID)).Scan(&kind, &k.Type, &version, &deliver, &key, &content, &payload, &k.Deliveries)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find message: %w", err)
	}
	if !m.DeliverAt.IsZero() {
		want = m.DeliverAt.UnixMicro()
	}
	wanted := m.ContentType
	if wanted == "" {
		wanted = "application/json"
	}
	if kind != string(m.Kind) || k.Type != m.Type || version != m.SchemaVersion || deliver != want || key != m.OrderingKey || content != wanted || !bytes.Equal(payload, m.Payload) {
		return nil, Duplicate(path + "/id")
	}
	return &k, nil
}

// Duplicate refuses an id that is taken.
func Duplicate(path string) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "duplicate-id",
		Sentence: "A message with this id is staged already, with other content.",
		Hint:     "An id stands for one message for ever: take a new one, or leave it out. To repeat a request safely, send the same bytes with an Idempotency-Key.",
		At:       []mediator.Violation{{Path: path, Message: "must be new, or the id of an equal message"}}}
}
