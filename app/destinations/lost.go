package destinations

import (
	"context"
	"fmt"

	"github.com/posthorn/posthorn/outbox"
)

// lostHold begins the hold of a handler whose destination nobody knows: messages still reach it, and none is dropped.
const lostHold = "its destination is not known; create it again under this name, or delete it"

const (
	// A deletion is decided by its marker.
	finishDeletions = `DELETE FROM posthorn_destinations WHERE ? || name IN (SELECT name FROM posthorn_meta)`
	holdLost        = `INSERT INTO outbox_lanes(handler, held_at, reason)
SELECT DISTINCT r.handler, ?, ? FROM outbox_routes r
WHERE r.source = 'destination' AND NOT EXISTS (SELECT 1 FROM posthorn_destinations d WHERE d.name = r.handler) ON CONFLICT DO NOTHING`
	findLost = `SELECT coalesce(sum(r.tenant = ?2), 0), coalesce(sum(r.tenant <> ?2), 0) FROM outbox_routes r
WHERE r.handler = ?1 AND r.source = 'destination' AND NOT EXISTS (SELECT 1 FROM posthorn_destinations d WHERE d.name = r.handler)`
	freeLost = `DELETE FROM outbox_lanes WHERE handler = ? AND reason = ?`
)

// reconcile mends what is left when destinations and routes are in two files and only the first of them has a COMMIT: a deletion whose row is
// still there, a creation whose row never came. It also finds the routes that a lost data folder leaves behind.
func (s *Service) reconcile(ctx context.Context) error {
	var lost int64
	err := s.config.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		if _, err := tx.Tx.Tx.ExecContext(ctx, finishDeletions, leavingPrefix); err != nil {
			return err
		}
		held, err := tx.Tx.Tx.ExecContext(ctx, holdLost, tx.Now.UnixMicro(), lostHold)
		if err != nil {
			return err
		}
		lost, err = held.RowsAffected()
		return err
	})
	if err != nil {
		return fmt.Errorf("reconcile destinations with routes: %w", err)
	}
	if lost > 0 {
		s.config.Logger.Warn("there are routes to destinations that are not known; their deliveries are held", "handlers", lost)
	}
	return nil
}

// lostRoutes says whether a tenant, or another one, has routes to a destination that is not known.
func lostRoutes(ctx context.Context, q querier, name string, tenant outbox.TenantID) (ours, others bool, err error) {
	var own, foreign int
	if err := q.QueryRowContext(ctx, findLost, name, string(tenant)).Scan(&own, &foreign); err != nil {
		return false, false, fmt.Errorf("find routes to %s: %w", name, err)
	}
	return own > 0, foreign > 0, nil
}
