package destinations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// leavingPrefix names the marker of a deletion whose deliveries are not all settled yet; its value is the reason that they are settled with.
const leavingPrefix = "leaving:"

type remove struct{ name }

// Authorize asks for an admin.
func (remove) Authorize(by access.Principal) error { return by.Require(access.Admin) }

// Delete removes a destination, its routes and its secrets, and settles what is pending for it as cancelled. Attempts that run are finished
// and settled as usual.
func (s *Service) Delete(ctx context.Context, destination string) (Deleted, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	reason, err := mediator.Send(ctx, s.config.Mediator, remove{name(destination)}, func(ctx context.Context, work *mediator.UnitOfWork, c remove) (string, error) {
		d, err := find(ctx, work.Tx.Tx.Tx, work.By.Tenant, string(c.name))
		if err != nil {
			lost, _, lostErr := lostRoutes(ctx, work.Tx.Tx.Tx, string(c.name), work.By.Tenant)
			if lostErr != nil || !lost {
				return "", errors.Join(lostErr, err)
			}
			d = Destination{Name: string(c.name), Tenant: work.By.Tenant}
		}
		reason := "the destination was deleted by " + work.By.Actor
		for _, change := range []struct {
			query string
			args  []any
		}{
			{`DELETE FROM posthorn_destinations WHERE name = ?`, []any{d.Name}},
			{`DELETE FROM outbox_routes WHERE handler = ?`, []any{d.Name}},
			{`INSERT INTO posthorn_meta(name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, []any{leavingPrefix + d.Name, reason}},
		} {
			if _, err := work.Tx.Tx.Tx.ExecContext(ctx, change.query, change.args...); err != nil {
				return "", fmt.Errorf("delete destination %s: %w", d.Name, err)
			}
		}
		return reason, access.Audit(ctx, work.Tx, work.By, "destination.delete", d.Name, d.describe())
	})
	if err != nil {
		return Deleted{}, err
	}
	// The deletion is decided: whoever asked may go, the deliveries are settled all the same.
	ctx = context.WithoutCancel(ctx)
	cancelled, settled, err := s.settle(ctx, destination, reason)
	if by, ok := access.From(ctx); ok {
		s.config.Observe(by.Tenant, destination, "deleted")
	}
	if err != nil {
		s.config.Logger.Warn("deliveries of a deleted destination are not all settled yet", "destination", destination, "error", err)
	}
	if !settled {
		s.finishLater(destination, reason)
	}
	return Deleted{Name: destination, Cancelled: cancelled}, nil
}

const countOpen = `SELECT count(*) FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ?`

// settle cancels what is pending for a deleted destination. While attempts run, they may still come back as pending, so that it is not
// settled yet.
func (s *Service) settle(ctx context.Context, destination, reason string) (cancelled int64, settled bool, err error) {
	cancelled, err = s.config.Dispatcher.Remove(ctx, outbox.HandlerName(destination), reason)
	s.forget(destination)
	if err != nil {
		return cancelled, false, fmt.Errorf("cancel deliveries of %s: %w", destination, err)
	}
	err = s.config.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		var open int
		if err := tx.Tx.Tx.QueryRowContext(ctx, countOpen, destination).Scan(&open); err != nil {
			return err
		}
		if settled = open == 0; !settled {
			return nil
		}
		_, err := tx.Tx.Tx.ExecContext(ctx, `DELETE FROM posthorn_meta WHERE name = ?`, leavingPrefix+destination)
		return err
	})
	if err != nil {
		return cancelled, false, fmt.Errorf("finish deletion of %s: %w", destination, err)
	}
	return cancelled, settled, nil
}

// isLeaving says whether a deleted destination of this name still has deliveries.
func isLeaving(ctx context.Context, q querier, destination string) (left bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM posthorn_meta WHERE name = ?)`, leavingPrefix+destination).Scan(&left)
	if err != nil {
		return false, fmt.Errorf("find deletion of %s: %w", destination, err)
	}
	return left, nil
}

// unfinished lists the deletions that an earlier boot did not finish, with their reasons.
func unfinished(ctx context.Context, q querier) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, `SELECT name, value FROM posthorn_meta WHERE name GLOB ?`, leavingPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("find unfinished deletions: %w", err)
	}
	defer func() { _ = rows.Close() }()
	left := map[string]string{}
	for rows.Next() {
		var key, reason string
		if err := rows.Scan(&key, &reason); err != nil {
			return nil, fmt.Errorf("find unfinished deletions: %w", err)
		}
		left[strings.TrimPrefix(key, leavingPrefix)] = reason
	}
	return left, rows.Err()
}
