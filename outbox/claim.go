package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// claimBytes bounds the payloads that one claim brings into memory. At least one delivery is claimed whatever its size.
const claimBytes = 16 << 20

const claimColumns = `d.id, d.tenant, d.attempt, d.charged, d.interrupted, coalesce(d.unreachable_at, 0), coalesce(d.retry_since, d.created_at), coalesce(d.blocks, 0),
  m.seq, m.id, m.kind, m.type, m.schema_version, m.occurred_at, coalesce(m.deliver_at, 0), coalesce(m.ordering_key, ''), m.content_type,
  m.payload, m.payload_sha256, m.headers`

// The due index answers this in order of time, then of commit; blocked deliveries are not in it.
const selectDue = `SELECT ` + claimColumns + `
FROM outbox_deliveries d INDEXED BY outbox_deliveries_due JOIN outbox_messages m ON m.seq = d.seq
WHERE d.state = 'pending' AND d.blocked = 0 AND d.handler = ? AND d.tenant = ? AND d.next_attempt_at <= ? AND d.interrupted = 0
ORDER BY d.next_attempt_at LIMIT ?`

const selectNextTenant = `SELECT min(tenant) FROM outbox_deliveries INDEXED BY outbox_deliveries_due
WHERE state = 'pending' AND blocked = 0 AND handler = ? AND tenant > ?`

const selectNextDue = `SELECT min(next_attempt_at) FROM outbox_deliveries INDEXED BY outbox_deliveries_due
WHERE state = 'pending' AND blocked = 0 AND handler = ? AND tenant = ? AND next_attempt_at > ?`

const raiseFence = `UPDATE posthorn_meta SET value = value + 1 WHERE name = 'fence' RETURNING value`

const updateClaimed = `UPDATE outbox_deliveries SET state = 'processing', attempt = attempt + 1, charged = charged + 1,
  next_attempt_at = NULL, blocked = NULL, lease_owner = ?, lease_expires_at = ?, fence = ?
WHERE id IN (SELECT value FROM json_each(?))`

const updateHash = `UPDATE outbox_messages SET payload_sha256 = ? WHERE seq = ? AND payload_sha256 IS NULL`

var errHashMismatch = errors.New("the stored payload no longer matches its hash; it was not sent")

// due is what one look at a lane's queue found.
type due struct {
	deliveries []Delivery
	corrupt    []Delivery
	unhashed   []Delivery
	bytes      int
}

// claimDue takes up to limit due deliveries of a lane, sharing them between the tenants that have any: an owner, an expiry and a fence
// for each (P14). The transaction is the writer's, which is short; no handler runs before it is committed (P15).
func claimDue(ctx context.Context, tx *Tx, l *lane, owner string, limit int) (claimed due, next time.Time, err error) {
	tenants, err := dueTenants(ctx, tx, l.handler.Name)
	if err != nil || len(tenants) == 0 {
		return due{}, time.Time{}, err
	}
	// Another tenant is first each time, so that a share smaller than the number of tenants goes round.
	l.turn++
	var full []TenantID
	for i := range tenants {
		tenant := tenants[(i+l.turn)%len(tenants)]
		share := min((limit+len(tenants)-1)/len(tenants), limit-len(claimed.deliveries))
		if share <= 0 || claimed.bytes >= claimBytes {
			full = append(full, tenant)
			continue
		}
		n, err := selectDeliveries(ctx, tx, &claimed, l.handler.Name, selectDue, string(l.handler.Name), string(tenant), micros(tx.Now), share)
		if err != nil {
			return due{}, time.Time{}, err
		}
		if n == share || claimed.bytes >= claimBytes {
			full = append(full, tenant)
		} else if next, err = earlier(ctx, tx, next, l.handler.Name, tenant); err != nil {
			return due{}, time.Time{}, err
		}
	}
	if len(full) > 0 {
		next = tx.Now // more may be due already
	}
	return claimed, next, lease(ctx, tx, &claimed, l, owner)
}

// lease marks the found deliveries as processing under one new fence.
func lease(ctx context.Context, tx *Tx, found *due, l *lane, owner string) error {
	all := append(append([]Delivery(nil), found.deliveries...), found.corrupt...)
	if len(all) == 0 {
		return nil
	}
	var fence Fence
	stmt, err := tx.Stmt(ctx, raiseFence)
	if err != nil {
		return err
	}
	if err := stmt.QueryRowContext(ctx).Scan(&fence); err != nil {
		return fmt.Errorf("raise fence: %w", err)
	}
	expires := tx.Now.Add(l.leaseFor)
	if n, err := execCount(ctx, tx, updateClaimed, owner, micros(expires), int64(fence), idList(all)); err != nil {
		return fmt.Errorf("claim deliveries: %w", err)
	} else if n != int64(len(all)) {
		return fmt.Errorf("claim deliveries: %d of %d rows changed", n, len(all))
	}
	for _, d := range found.unhashed {
		if _, err := execCount(ctx, tx, updateHash, d.Message.PayloadSHA256[:], d.Message.Seq); err != nil {
			return fmt.Errorf("store payload hash: %w", err)
		}
	}
	for _, list := range [][]Delivery{found.deliveries, found.corrupt} {
		for i := range list {
			list[i].Fence, list[i].LeaseExpires = fence, expires
			list[i].Attempt++
			list[i].Charged++
		}
	}
	return nil
}

// dueTenants walks the due index from tenant to tenant, one seek each.
func dueTenants(ctx context.Context, tx *Tx, handler HandlerName) ([]TenantID, error) {
	stmt, err := tx.Stmt(ctx, selectNextTenant)
	if err != nil {
		return nil, err
	}
	var tenants []TenantID
	for last := ""; ; {
		var next sql.NullString
		if err := stmt.QueryRowContext(ctx, string(handler), last).Scan(&next); err != nil {
			return nil, fmt.Errorf("find due tenants: %w", err)
		}
		if !next.Valid {
			return tenants, nil
		}
		last = next.String
		tenants = append(tenants, TenantID(last))
	}
}

func earlier(ctx context.Context, tx *Tx, than time.Time, handler HandlerName, tenant TenantID) (time.Time, error) {
	stmt, err := tx.Stmt(ctx, selectNextDue)
	if err != nil {
		return than, err
	}
	var us sql.NullInt64
	if err := stmt.QueryRowContext(ctx, string(handler), string(tenant), micros(tx.Now)).Scan(&us); err != nil {
		return than, fmt.Errorf("find next due time: %w", err)
	}
	if us.Valid && (than.IsZero() || fromMicros(us.Int64).Before(than)) {
		return fromMicros(us.Int64), nil
	}
	return than, nil
}

// selectDeliveries reads deliveries with their messages into found and checks each payload against its hash.
func selectDeliveries(ctx context.Context, tx *Tx, found *due, handler HandlerName, query string, args ...any) (n int, err error) {
	stmt, err := tx.Stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("find due deliveries: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		d := Delivery{Handler: handler}
		m := &d.Message
		var occurred, deliver int64
		var hash []byte
		var headers string
		if err := rows.Scan(&d.ID, &m.Tenant, &d.Attempt, &d.Charged, &d.interrupted, &d.unreachableSince, &d.retrySince, &d.blocks,
			&m.Seq, &m.ID, &m.Kind, &m.Type, &m.SchemaVersion, &occurred, &deliver, &m.OrderingKey, &m.ContentType,
			&m.Payload, &hash, &headers); err != nil {
			return n, fmt.Errorf("read due delivery: %w", err)
		}
		m.OccurredAt, m.Headers = fromMicros(occurred), decodeHeaders(headers)
		if deliver != 0 {
			m.DeliverAt = fromMicros(deliver)
		}
		n++
		found.bytes += len(m.Payload)
		m.PayloadSHA256 = sha256.Sum256(m.Payload)
		switch {
		case hash == nil:
			found.unhashed = append(found.unhashed, d)
			found.deliveries = append(found.deliveries, d)
		case string(hash) != string(m.PayloadSHA256[:]):
			found.corrupt = append(found.corrupt, d)
		default:
			found.deliveries = append(found.deliveries, d)
		}
		if found.bytes >= claimBytes {
			break
		}
	}
	return n, rows.Err()
}

func idList(ds []Delivery) string {
	b := make([]byte, 0, 12*len(ds)+2)
	b = append(b, '[')
	for i, d := range ds {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d.ID), 10)
	}
	return string(append(b, ']'))
}

// execCount runs a prepared statement and returns how many rows it changed.
func execCount(ctx context.Context, tx *Tx, query string, args ...any) (int64, error) {
	stmt, err := tx.Stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
