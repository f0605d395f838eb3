package destinations

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// querier is a transaction or a pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const selectDestination = `SELECT d.name, d.tenant, d.kind, d.types, d.options, d.secrets, d.created_at, d.created_by, coalesce(l.reason, '')
FROM posthorn_destinations d LEFT JOIN outbox_lanes l ON l.handler = d.name `

func scan(scan func(...any) error) (Destination, error) {
	var d Destination
	var types, options string
	var created int64
	if err := scan(&d.Name, &d.Tenant, &d.Kind, &types, &options, &d.Sealed, &created, &d.CreatedBy, &d.Hold); err != nil {
		return d, err
	}
	d.CreatedAt = time.UnixMicro(created).UTC()
	if err := errors.Join(json.Unmarshal([]byte(types), &d.Types), json.Unmarshal([]byte(options), &d.Options)); err != nil {
		return d, fmt.Errorf("read destination %s: %w", d.Name, err)
	}
	return d, nil
}

// find reads one of a tenant's destinations.
func find(ctx context.Context, q querier, tenant outbox.TenantID, name string) (Destination, error) {
	d, err := scan(q.QueryRowContext(ctx, selectDestination+`WHERE d.name = ? AND d.tenant = ?`, name, string(tenant)).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return d, unknown()
	} else if err != nil {
		return d, fmt.Errorf("find destination: %w", err)
	}
	return d, nil
}

// list reads destinations by name, after one name, at most limit; of one tenant, or of all.
func list(ctx context.Context, q querier, tenant outbox.TenantID, after string, limit int) ([]Destination, error) {
	rows, err := q.QueryContext(ctx, selectDestination+`WHERE d.name > ? AND (? OR d.tenant = ?) ORDER BY d.name LIMIT ?`,
		after, tenant == everyTenant, string(tenant), limit)
	if err != nil {
		return nil, fmt.Errorf("list destinations: %w", err)
	}
	defer func() { _ = rows.Close() }()
	found := []Destination{}
	for rows.Next() {
		d, err := scan(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list destinations: %w", err)
		}
		found = append(found, d)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list destinations: %w", err)
	}
	return found, nil
}

// everyTenant is no tenant's name.
const everyTenant outbox.TenantID = "*"

const (
	countNames = `SELECT count(*), coalesce(sum(name = ?), 0) FROM posthorn_destinations`
	insertRow  = `INSERT INTO posthorn_destinations(name, tenant, kind, types, options, secrets, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	// The dispatcher's registration finds its routes there already. They belong to the commit of the row, so that there is no moment at
	// which a destination exists and misses what is staged.
	insertRoute = `INSERT INTO outbox_routes(handler, kind, pattern, tenant, source) VALUES (?, 'integration-event', ?, ?, 'destination')
ON CONFLICT DO NOTHING`
)

// insert writes a new destination and its routes.
func insert(ctx context.Context, tx *outbox.Tx, d Destination) error {
	var all, named int
	if err := tx.Tx.Tx.QueryRowContext(ctx, countNames, d.Name).Scan(&all, &named); err != nil {
		return fmt.Errorf("count destinations: %w", err)
	}
	left, err := isLeaving(ctx, tx.Tx.Tx, d.Name)
	lost, others, lostErr := lostRoutes(ctx, tx.Tx.Tx, d.Name, d.Tenant)
	switch {
	case err != nil || lostErr != nil:
		return errors.Join(err, lostErr)
	case named > 0 || others:
		return taken(d.Name)
	case left:
		return leaving(d.Name)
	case all >= MaxDestinations:
		return tooMany()
	}
	types, options, err := d.encode()
	if err != nil {
		return err
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, insertRow, d.Name, string(d.Tenant), string(d.Kind), types, options, d.Sealed,
		tx.Now.UnixMicro(), d.CreatedBy); err != nil {
		return fmt.Errorf("write destination %s: %w", d.Name, err)
	}
	if lost {
		if _, err := tx.Tx.Tx.ExecContext(ctx, freeLost, d.Name, lostHold); err != nil {
			return fmt.Errorf("free %s: %w", d.Name, err)
		}
	}
	return route(ctx, tx, d)
}

const (
	updateRow    = `UPDATE posthorn_destinations SET types = ?, options = ?, secrets = ? WHERE name = ?`
	deleteRoutes = `DELETE FROM outbox_routes WHERE handler = ? AND pattern NOT IN (SELECT value FROM json_each(?))`
)

// update writes a destination anew, and its routes.
func update(ctx context.Context, tx *outbox.Tx, d Destination) error {
	types, options, err := d.encode()
	if err != nil {
		return err
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, updateRow, types, options, d.Sealed, d.Name); err != nil {
		return fmt.Errorf("write destination %s: %w", d.Name, err)
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, deleteRoutes, d.Name, types); err != nil {
		return fmt.Errorf("remove routes of %s: %w", d.Name, err)
	}
	return route(ctx, tx, d)
}

// encode writes what the row keeps as JSON.
func (d Destination) encode() (types, options string, err error) {
	t, typesErr := json.Marshal(d.Types)
	o, optionsErr := json.Marshal(d.Options)
	if err := errors.Join(typesErr, optionsErr); err != nil {
		return "", "", fmt.Errorf("write destination %s: %w", d.Name, err)
	}
	return string(t), string(o), nil
}

// route adds the routes that are not there yet.
func route(ctx context.Context, tx *outbox.Tx, d Destination) error {
	for _, pattern := range d.Types {
		if _, err := tx.Tx.Tx.ExecContext(ctx, insertRoute, d.Name, pattern, string(d.Tenant)); err != nil {
			return fmt.Errorf("route %s to %s: %w", pattern, d.Name, err)
		}
	}
	return nil
}

// hold writes a lane's hold, or takes it away for an empty reason.
func hold(ctx context.Context, tx *outbox.Tx, name, reason string) (string, error) {
	if reason == "" || reason == outbox.BackfillHold {
		return outbox.ReleaseLane(ctx, tx, outbox.HandlerName(name))
	}
	_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_lanes(handler, held_at, reason) VALUES (?, ?, ?)
		ON CONFLICT (handler) DO UPDATE SET held_at = excluded.held_at, reason = excluded.reason`, name, tx.Now.UnixMicro(), reason)
	if err != nil {
		return "", fmt.Errorf("hold destination %s: %w", name, err)
	}
	return reason, nil
}

// Sealed counts the destinations whose signing secrets are sealed.
func Sealed(ctx context.Context, read *bun.DB) (n int, err error) {
	if err := read.DB.QueryRowContext(ctx, `SELECT count(*) FROM posthorn_destinations WHERE secrets IS NOT NULL`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count sealed secrets: %w", err)
	}
	return n, nil
}
