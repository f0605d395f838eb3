package outbox

import "context"

const selectSuspects = `SELECT ` + claimColumns + `
FROM outbox_deliveries d INDEXED BY outbox_deliveries_interrupted JOIN outbox_messages m ON m.seq = d.seq
WHERE d.interrupted = 1 AND d.state = 'pending' AND d.blocked = 0 AND d.handler = ? ORDER BY d.id LIMIT 1`

// claimSuspect takes one delivery that was in flight when the process ended. Only one of them runs at a time, so that a message that
// kills the process is charged alone.
func (t *turn) claimSuspect(ctx context.Context, tx *Tx, d *Dispatcher) error {
	for _, k := range t.suspects {
		l := k.lane
		found := due{check: d.config.Check}
		if _, err := selectDeliveries(ctx, tx, &found, claimBytes, l.handler.Name, selectSuspects, string(l.handler.Name)); err != nil {
			return err
		}
		if len(found.deliveries)+len(found.unfit) == 0 {
			t.innocent = append(t.innocent, l)
			continue
		}
		if err := lease(ctx, tx, &found, l, d.owner); err != nil {
			return err
		}
		if err := d.bury(ctx, tx, l, found.unfit); err != nil {
			return err
		}
		t.claims = append(t.claims, claim{lane: l, due: found, suspect: true, probe: k.probe})
		return nil
	}
	return nil
}
