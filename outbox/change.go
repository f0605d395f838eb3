package outbox

import (
	"context"
	"fmt"
)

// Change is what an observer is told after a commit: a delivery came into a state. It is a hint; the store is the truth.
type Change struct {
	Tenant   TenantID
	Message  MessageID
	Type     string
	Delivery DeliveryID
	Handler  HandlerName
	State    StateName
	// Attempt tells repeats of one state apart.
	Attempt int
	// Version rises with every commit of the dispatcher. It begins anew with each process.
	Version int64
	// Class says how the latest attempt ended, where one ended.
	Class Class
}

const selectStaged = `SELECT d.id, d.handler, d.tenant, m.id, m.type
FROM outbox_deliveries d JOIN outbox_messages m ON m.seq = d.seq WHERE d.id > ? ORDER BY d.id`

// readStaged reads what arrived since the last turn, one by one.
func (t *turn) readStaged(ctx context.Context, tx *Tx) error {
	stmt, err := tx.Stmt(ctx, selectStaged)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, int64(t.cursor))
	if err != nil {
		return fmt.Errorf("find staged messages: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		c := Change{State: StatePending}
		if err := rows.Scan(&c.Delivery, &c.Handler, &c.Tenant, &c.Message, &c.Type); err != nil {
			return fmt.Errorf("read staged message: %w", err)
		}
		t.staged = append(t.staged, c)
	}
	return rows.Err()
}

// observe tells the observer, if there is one. Changes of one call share a version.
func (d *Dispatcher) observe(changes []Change) {
	if d.config.Observe == nil || len(changes) == 0 {
		return
	}
	d.observing.Lock()
	defer d.observing.Unlock()
	version := d.version.Add(1)
	for i := range changes {
		changes[i].Version = version
	}
	d.config.Observe(changes)
}

// changes lists what a committed turn changed, in the order in which it did: settled, staged, claimed.
func (t *turn) changes() []Change {
	var all []Change
	for _, outcomes := range [][]outcome{t.outcomes, t.overdue} {
		for _, o := range outcomes {
			if o.stale {
				continue
			}
			c := changeOf(o.attempt.delivery, StateDispatched)
			c.Class = Delivered
			if o.failure != nil {
				c.State, c.Class = StatePending, o.failure.Class
				if o.verdict.dead {
					c.State, c.Class = StateDeadLetter, o.verdict.class
				}
			}
			all = append(all, c)
		}
	}
	all = append(all, t.staged...)
	for _, claim := range t.claims {
		for _, dl := range claim.due.deliveries {
			all = append(all, changeOf(dl, StateProcessing))
		}
		for _, u := range claim.due.unfit {
			c := changeOf(u.Delivery, StateDeadLetter)
			c.Class = u.failure.Class
			all = append(all, c)
		}
	}
	return all
}

func changeOf(dl Delivery, state StateName) Change {
	return Change{Tenant: dl.Message.Tenant, Message: dl.Message.ID, Type: dl.Message.Type, Delivery: dl.ID, Handler: dl.Handler, State: state, Attempt: dl.Attempt}
}
