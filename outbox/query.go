package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNoMessage is answered, wrapped, for a message that does not exist in the tenant.
var ErrNoMessage = errors.New("there is no such message")

const selectMessage = `SELECT ` + messageColumns + `, m.payload_sha256, CAST(m.payload AS BLOB), m.headers
FROM outbox_messages m WHERE m.tenant = ? AND m.id = ?`

// FindMessage reads a tenant's message with its payload, its deliveries, and what happened to each.
func FindMessage(ctx context.Context, db *sql.DB, tenant TenantID, id MessageID) (MessageRecord, error) {
	// One transaction, so that the parts are of one moment.
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return MessageRecord{}, fmt.Errorf("find message: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	m, err := findMessage(ctx, tx, tenant, id)
	if err != nil {
		return m, err
	}
	if m.Deliveries, err = deliveriesOf(ctx, tx, []int64{m.Seq}); err != nil {
		return m, err
	}
	for i := range m.Deliveries {
		if err := history(ctx, tx, &m.Deliveries[i]); err != nil {
			return m, err
		}
	}
	return m, nil
}

func findMessage(ctx context.Context, tx *sql.Tx, tenant TenantID, id MessageID) (MessageRecord, error) {
	var row messageRow
	var hash, payload []byte
	var headers string
	err := row.scan(tx.QueryRowContext(ctx, selectMessage, string(tenant), string(id)), &hash, &payload, &headers)
	if errors.Is(err, sql.ErrNoRows) {
		return MessageRecord{}, fmt.Errorf("find message: %w", ErrNoMessage)
	}
	if err != nil {
		return MessageRecord{}, fmt.Errorf("find message: %w", err)
	}
	m := MessageRecord{Message: row.Message, Hashed: len(hash) == len(row.PayloadSHA256)}
	m.Payload, m.Headers = payload, decodeHeaders(headers)
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	copy(m.PayloadSHA256[:], hash)
	return m, nil
}

const selectPayload = `SELECT content_type, CAST(payload AS BLOB) FROM outbox_messages WHERE tenant = ? AND id = ?`

// FindPayload reads a tenant's payload, byte for byte as it was staged, and its media type.
func FindPayload(ctx context.Context, db *sql.DB, tenant TenantID, id MessageID) (contentType string, payload []byte, err error) {
	err = db.QueryRowContext(ctx, selectPayload, string(tenant), string(id)).Scan(&contentType, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, fmt.Errorf("find payload: %w", ErrNoMessage)
	}
	if err != nil {
		return "", nil, fmt.Errorf("find payload: %w", err)
	}
	return contentType, payload, nil
}

// querier is a pool of connections, or a transaction on one of them.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const selectDeliveryRows = `SELECT ` + deliveryColumns + ` FROM outbox_deliveries d WHERE d.seq IN (SELECT value FROM json_each(?)) ORDER BY d.seq DESC, d.id`

// deliveriesOf reads the deliveries of messages, those of one message together.
func deliveriesOf(ctx context.Context, db querier, seqs []int64) ([]DeliveryRecord, error) {
	var list []DeliveryRecord
	err := eachDelivery(ctx, db, seqs, func(_ int64, d DeliveryRecord) { list = append(list, d) })
	return list, err
}

func eachDelivery(ctx context.Context, db querier, seqs []int64, take func(seq int64, d DeliveryRecord)) error {
	rows, err := db.QueryContext(ctx, selectDeliveryRows, intList(seqs))
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row deliveryRow
		if err := row.scan(rows); err != nil {
			return fmt.Errorf("read deliveries: %w", err)
		}
		d, err := row.record()
		if err != nil {
			return err
		}
		take(row.seq, d)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	return nil
}
