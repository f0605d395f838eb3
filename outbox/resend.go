package outbox

import (
	"context"
	"fmt"
)

// The latest dispatched delivery to each handler is the one that is sent again.
const selectDispatched = `SELECT max(d.id) FROM outbox_messages m JOIN outbox_deliveries d ON d.seq = m.seq
WHERE m.tenant = ? AND m.id = ? AND d.state = 'dispatched' AND (?3 = '' OR d.handler = ?3) GROUP BY d.handler ORDER BY d.handler`

// A delivery that sends again has no ordering key, and so no place in the order: what came after the first one has been delivered.
const insertResend = `INSERT INTO outbox_deliveries(seq, handler, tenant, next_attempt_at, blocked, resend_of, created_at)
SELECT seq, handler, tenant, ?, 0, id, ? FROM outbox_deliveries WHERE id = ? RETURNING id`

// Resend sends a dispatched message again to a handler, or, with none named, to each registered handler that accepted it: a new delivery
// each, which names the old one and stands outside the order. The message keeps its id, so a target that suppresses repeats does nothing
// twice, and an InTx handler answers dispatched, suppressed. It returns the new deliveries.
func (d *Dispatcher) Resend(ctx context.Context, tx *Tx, by Operator, message MessageID, handler HandlerName) ([]DeliveryID, error) {
	if err := by.validate(); err != nil {
		return nil, fmt.Errorf("resend message: %w", err)
	}
	dispatched, err := deliveryIDs(ctx, tx, selectDispatched, string(by.Tenant), string(message), string(handler))
	if err != nil {
		return nil, fmt.Errorf("resend message: %w", err)
	}
	old, err := readOperated(ctx, tx, by.Tenant, dispatched)
	if err != nil {
		return nil, fmt.Errorf("resend message: %w", err)
	}
	if len(old) == 0 {
		return nil, fmt.Errorf("resend message: %w", nothingToResend(ctx, tx, by.Tenant, message))
	}
	var made []DeliveryID
	for _, o := range old {
		if !d.knows(o.Handler) {
			continue
		}
		id, err := deliveryIDs(ctx, tx, insertResend, micros(tx.Now), micros(tx.Now), int64(o.Delivery))
		if err != nil || len(id) != 1 {
			return nil, fmt.Errorf("resend delivery %d: %w", o.Delivery, err)
		}
		made = append(made, DeliveryID(id[0]))
	}
	if len(made) == 0 {
		return nil, fmt.Errorf("resend message: %w", ErrUnknownHandler)
	}
	// The dispatcher finds the new deliveries as it finds every other that was staged.
	return made, nil
}

// nothingToResend says why.
func nothingToResend(ctx context.Context, tx *Tx, tenant TenantID, message MessageID) error {
	found, err := deliveryIDs(ctx, tx, `SELECT seq FROM outbox_messages WHERE tenant = ? AND id = ?`, string(tenant), string(message))
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return ErrNoMessage
	}
	return ErrNotDispatched
}
