package outbox

import (
	"context"
	"fmt"
)

// reconcileRoutes makes the stored routes of a handler those of its registration, and writes nothing where they are already.
func reconcileRoutes(ctx context.Context, tx *Tx, h Handler) error {
	stored, err := readRoutes(ctx, tx, h.Name)
	if err != nil {
		return err
	}
	for _, r := range h.Routes {
		if stored[r] {
			delete(stored, r)
			continue
		}
		if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_routes(handler, kind, pattern, tenant, source) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (kind, pattern, handler, tenant) DO NOTHING`, string(h.Name), string(r.Kind), r.Pattern, string(r.Tenant), h.Source); err != nil {
			return fmt.Errorf("add route %s %s of handler %s: %w", r.Kind, r.Pattern, h.Name, err)
		}
	}
	for r := range stored {
		if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_routes WHERE handler = ? AND kind = ? AND pattern = ? AND tenant = ?`,
			string(h.Name), string(r.Kind), r.Pattern, string(r.Tenant)); err != nil {
			return fmt.Errorf("remove route %s %s of handler %s: %w", r.Kind, r.Pattern, h.Name, err)
		}
	}
	return nil
}

func readRoutes(ctx context.Context, tx *Tx, name HandlerName) (map[Route]bool, error) {
	rows, err := tx.Tx.Tx.QueryContext(ctx, `SELECT kind, pattern, tenant FROM outbox_routes WHERE handler = ?`, string(name))
	if err != nil {
		return nil, fmt.Errorf("read routes of handler %s: %w", name, err)
	}
	defer func() { _ = rows.Close() }()
	routes := map[Route]bool{}
	for rows.Next() {
		var r Route
		if err := rows.Scan(&r.Kind, &r.Pattern, &r.Tenant); err != nil {
			return nil, fmt.Errorf("read routes of handler %s: %w", name, err)
		}
		routes[r] = true
	}
	return routes, rows.Err()
}

// TypeVersion names one version of a message type.
type TypeVersion struct {
	// Kind defaults to IntegrationEvent.
	Kind          Kind
	Type          string
	SchemaVersion int
}

// DeclareTypes makes types the integration events that may be staged from the next commit on (P2); what was staged stays.
func DeclareTypes(ctx context.Context, tx *Tx, types []TypeVersion) error {
	if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_types`); err != nil {
		return fmt.Errorf("declare types: %w", err)
	}
	for _, t := range types {
		if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_types(type, schema_version) VALUES (?, ?) ON CONFLICT DO NOTHING`, t.Type, t.SchemaVersion); err != nil {
			return fmt.Errorf("declare type %s version %d: %w", t.Type, t.SchemaVersion, err)
		}
	}
	return nil
}

// DeclareReads says what the delivering program, worker, can read; nothing else may be staged while it is the active one (P35).
// An empty list refuses nothing.
func DeclareReads(ctx context.Context, tx *Tx, worker string, reads []TypeVersion) error {
	if _, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM outbox_workers`); err != nil {
		return fmt.Errorf("declare reads: %w", err)
	}
	for _, t := range reads {
		if t.Kind == "" {
			t.Kind = IntegrationEvent
		}
		if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_workers(kind, type, schema_version, worker) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			string(t.Kind), t.Type, t.SchemaVersion, worker); err != nil {
			return fmt.Errorf("declare read of %s version %d: %w", t.Type, t.SchemaVersion, err)
		}
	}
	return nil
}
