package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// Undispatched is a delivery that was staged and not dispatched, whose message another program could not read: it is pending, being attempted,
// or a dead letter that somebody may replay.
type Undispatched struct {
	TypeVersion
	ID       MessageID
	Delivery DeliveryID
	Tenant   TenantID
	Handler  HandlerName
	State    StateName
}

// UndispatchedCount is how many there are of one version in one state.
type UndispatchedCount struct {
	TypeVersion
	State      StateName
	Deliveries int64
}

const undispatched = ` FROM (
  SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL
  UNION ALL SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_dead WHERE state = 'dead-letter') open
CROSS JOIN outbox_deliveries d ON d.id = open.id CROSS JOIN outbox_messages m ON m.seq = d.seq
WHERE (:tenant = '' OR d.tenant = :tenant) AND m.kind || ' ' || m.type || ' ' || m.schema_version NOT IN (SELECT value FROM json_each(:reads))`

const countUndispatched = `SELECT m.kind, m.type, m.schema_version, d.state, count(*)` + undispatched + ` GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`

const listUndispatched = `SELECT m.kind, m.type, m.schema_version, m.id, d.id, d.tenant, d.handler, d.state` + undispatched + ` ORDER BY d.id LIMIT :limit`

// FindUndispatched finds what a program that reads only these versions could not read (P37): counts of all of it, and the first of them up to
// limit. An empty tenant means every tenant.
func FindUndispatched(ctx context.Context, db *sql.DB, tenant TenantID, reads []TypeVersion, limit int) (counts []UndispatchedCount, first []Undispatched, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, nil, fmt.Errorf("find undispatched: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	names := make([]string, len(reads))
	for i, t := range reads {
		t = t.filled()
		names[i] = fmt.Sprintf("%s %s %d", t.Kind, t.Type, t.SchemaVersion)
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, nil, fmt.Errorf("find undispatched: %w", err)
	}
	each := func(query string, scan func(*sql.Rows) error) error {
		rows, err := tx.QueryContext(ctx, query, sql.Named("tenant", string(tenant)), sql.Named("reads", string(list)), sql.Named("limit", limit))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	err = each(countUndispatched, func(rows *sql.Rows) error {
		var c UndispatchedCount
		err := rows.Scan(&c.Kind, &c.Type, &c.SchemaVersion, &c.State, &c.Deliveries)
		counts = append(counts, c)
		return err
	})
	if err == nil {
		err = each(listUndispatched, func(rows *sql.Rows) error {
			var u Undispatched
			err := rows.Scan(&u.Kind, &u.Type, &u.SchemaVersion, &u.ID, &u.Delivery, &u.Tenant, &u.Handler, &u.State)
			first = append(first, u)
			return err
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find undispatched: %w", err)
	}
	return counts, first, nil
}
