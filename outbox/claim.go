package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
)

// claimBytes bounds the payloads that one claim brings into memory. At least one delivery is claimed whatever its size.
const claimBytes = 16 << 20

const claimColumns = `d.id, d.tenant, d.attempt, d.charged, d.waited, d.interrupted, coalesce(d.unreachable_at, 0), coalesce(d.blocks, 0),
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

const selectLongestDue = `SELECT next_attempt_at FROM outbox_deliveries INDEXED BY outbox_deliveries_due
WHERE state = 'pending' AND blocked = 0 AND handler = ? AND tenant = ? AND interrupted = 0 ORDER BY next_attempt_at LIMIT 1`

const raiseFence = `UPDATE posthorn_meta SET value = value + 1 WHERE name = 'fence' RETURNING value`

const updateClaimed = `UPDATE outbox_deliveries SET state = 'processing', attempt = attempt + 1, charged = charged + 1,
  next_attempt_at = NULL, blocked = NULL, lease_owner = ?, lease_expires_at = ?, fence = ?
WHERE id IN (SELECT value FROM json_each(?))`

const updateHash = `UPDATE outbox_messages SET payload_sha256 = ? WHERE seq = ? AND payload_sha256 IS NULL`

var errHashMismatch = errors.New("the stored payload no longer matches its hash; it was not sent")

// due is what one look at a lane's queue found.
type due struct {
	deliveries []Delivery
	unfit      []unfit
	unhashed   []Delivery
	bytes      int
	check      func(Message) error // of a message that was staged past this program
}

// unfit is a delivery that is claimed only to be given up: its message must not be sent.
type unfit struct {
	Delivery
	failure *Failure
}

// claimDue takes up to limit due deliveries of a lane, sharing them between the tenants that have any: an owner, an expiry and a fence
// for each (P14). A probe is the one that has been due longest. The transaction is the writer's, which is short; no handler runs before
// it is committed (P15).
func (d *Dispatcher) claimDue(ctx context.Context, tx *Tx, l *lane, limit int, probe bool) (claimed due, next time.Time, err error) {
	claimed.check = d.config.Check
	tenants, err := dueTenants(ctx, tx, l.handler.Name)
	if err != nil || len(tenants) == 0 {
		return due{}, time.Time{}, err
	}
	if tenants = after(tenants, l.leader); probe {
		if tenants, err = longestDue(ctx, tx, l.handler.Name, tenants); err != nil {
			return due{}, time.Time{}, err
		}
	}
	var full, served int
	for i, tenant := range tenants {
		share := min((limit+len(tenants)-1)/len(tenants), limit-len(claimed.deliveries))
		// What the ones before leave of the memory is the next one's.
		budget := claimBytes / len(tenants) * (i + 1)
		if share <= 0 || claimed.bytes >= budget {
			full++
			continue
		}
		n, err := selectDeliveries(ctx, tx, &claimed, budget, l.handler.Name, selectDue, string(l.handler.Name), string(tenant), micros(tx.Now), share)
		if err != nil {
			return due{}, time.Time{}, err
		}
		if n > 0 {
			if served++; served == 1 {
				l.leader = tenant
			}
		}
		if n == share || claimed.bytes >= budget {
			full++
		} else if next, err = earlier(ctx, tx, next, l.handler.Name, tenant); err != nil {
			return due{}, time.Time{}, err
		}
	}
	if full > 0 {
		next = tx.Now // more may be due already
	}
	return claimed, next, lease(ctx, tx, &claimed, l, d.owner)
}

// after has another tenant lead each time, so that a share smaller than the number of tenants goes round among those that have something
// due: the order begins behind whoever led before.
func after(tenants []TenantID, leader TenantID) []TenantID {
	i, found := slices.BinarySearch(tenants, leader)
	if found {
		i++
	}
	return append(tenants[i:len(tenants):len(tenants)], tenants[:i]...)
}

// longestDue picks the tenant whose first delivery has been due longest.
func longestDue(ctx context.Context, tx *Tx, handler HandlerName, tenants []TenantID) ([]TenantID, error) {
	stmt, err := tx.Stmt(ctx, selectLongestDue)
	if err != nil {
		return nil, err
	}
	picked, longest := tenants[:1], int64(math.MaxInt64)
	for i, tenant := range tenants {
		var us int64
		err := stmt.QueryRowContext(ctx, string(handler), string(tenant)).Scan(&us)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("find longest due delivery: %w", err)
		}
		if err == nil && us < longest {
			longest, picked = us, tenants[i:i+1]
		}
	}
	return picked, nil
}

// lease marks the found deliveries as processing under one new fence.
func lease(ctx context.Context, tx *Tx, found *due, l *lane, owner string) error {
	if err := leaveUnreadable(ctx, tx, found, l); err != nil {
		return err
	}
	all := slices.Clone(found.deliveries)
	for _, u := range found.unfit {
		all = append(all, u.Delivery)
	}
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
	for i := range found.deliveries {
		found.deliveries[i].claimed(fence, expires)
	}
	for i := range found.unfit {
		found.unfit[i].claimed(fence, expires)
	}
	return nil
}

func (d *Delivery) claimed(fence Fence, expires time.Time) {
	d.Fence, d.LeaseExpires = fence, expires
	d.Attempt++
	d.Charged++
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

// earlier is the nearer of a time and the next time at which a delivery of the tenant becomes due.
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

// selectDeliveries reads deliveries with their messages into found, which it leaves when it holds so many bytes, and checks each payload
// against its hash.
func selectDeliveries(ctx context.Context, tx *Tx, found *due, budget int, handler HandlerName, query string, args ...any) (n int, err error) {
	stmt, err := tx.Stmt(ctx, mutant.SQL(query))
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
		if err := rows.Scan(&d.ID, &m.Tenant, &d.Attempt, &d.Charged, &d.waited, &d.interrupted, &d.unreachableSince, &d.blocks,
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
			// What is refused stays without its hash, so that every other handler, and a replay, asks again.
			if err := found.judge(*m); err != nil {
				found.unfit = append(found.unfit, unfit{d, &Failure{Class: Rejected, Err: err}})
				break
			}
			found.unhashed = append(found.unhashed, d)
			found.deliveries = append(found.deliveries, d)
		case string(hash) != string(m.PayloadSHA256[:]) && !mutant.HashUnchecked:
			found.unfit = append(found.unfit, unfit{d, &Failure{Class: Corrupt, Err: errHashMismatch}})
		default:
			found.deliveries = append(found.deliveries, d)
		}
		if found.bytes >= budget {
			break
		}
	}
	return n, rows.Err()
}

func (f *due) judge(m Message) error {
	if f.check == nil {
		return nil
	}
	return f.check(m)
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
	stmt, err := tx.Stmt(ctx, mutant.SQL(query))
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
