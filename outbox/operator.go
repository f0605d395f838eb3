package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Operator is who changes deliveries by hand, for which tenant, and why. The changes are made in the caller's transaction, beside whatever
// audit the caller writes; the running lanes and the counts follow its commit.
type Operator struct {
	// Tenant is the one whose deliveries are changed; those of another do not exist for the operator.
	Tenant TenantID
	// Actor is how the audit names the operator.
	Actor string
	// Reason is 1 to MaxReason characters on one line.
	Reason string
}

// MaxReason is the longest reason that an operator may give, in characters.
const MaxReason = 500

var (
	// ErrNoReason: an operator's change needs its reason.
	ErrNoReason = errors.New("a reason of 1 to 500 characters on one line is required")
	// ErrNoDelivery is answered, wrapped, for a delivery that does not exist in the tenant.
	ErrNoDelivery = errors.New("there is no such delivery")
	// ErrBlocksNothing: the dead letter holds back no other delivery.
	ErrBlocksNothing = errors.New("this dead letter holds back nothing: its messages have no order here, or it was passed over before")
	// ErrNotDispatched: no delivery of the message was accepted yet, so there is nothing to send again.
	ErrNotDispatched = errors.New("no delivery of this message was dispatched yet")
)

// StateConflict is the answer to an operator whose change does not fit the state of the delivery.
type StateConflict struct {
	Delivery DeliveryID
	// State is the one that the delivery is in, Want the one that the change is for.
	State, Want StateName
}

func (c *StateConflict) Error() string {
	return fmt.Sprintf("delivery %d is %s, and only one that is %s can be changed so", c.Delivery, c.State, c.Want)
}

func (o Operator) validate() error {
	if o.Tenant == "" || o.Actor == "" {
		return errors.New("an operator has a tenant and a name")
	}
	return JudgeReason(o.Reason)
}

// JudgeReason answers ErrNoReason to a reason that no operator may give.
func JudgeReason(reason string) error {
	if strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > MaxReason || !utf8.ValidString(reason) ||
		strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ErrNoReason
	}
	return nil
}

// operated is a delivery as an operator's change needs to know it.
type operated struct {
	Change
	key    string
	blocks bool
}

const selectOperated = `SELECT d.id, d.handler, d.tenant, d.state, d.attempt, coalesce(d.failure_class, ''), coalesce(d.ordering_key, ''),
  coalesce(d.blocks, 0), m.id, m.type
FROM json_each(?) j CROSS JOIN outbox_deliveries d ON d.id = j.value CROSS JOIN outbox_messages m ON m.seq = d.seq
WHERE d.tenant = ? ORDER BY d.id`

func readOperated(ctx context.Context, tx *Tx, tenant TenantID, ids []int64) ([]operated, error) {
	stmt, err := tx.Stmt(ctx, selectOperated)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, intList(ids), string(tenant))
	if err != nil {
		return nil, fmt.Errorf("find deliveries: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var found []operated
	for rows.Next() {
		var o operated
		if err := rows.Scan(&o.Delivery, &o.Handler, &o.Tenant, &o.State, &o.Attempt, &o.Class, &o.key, &o.blocks, &o.Message, &o.Type); err != nil {
			return nil, fmt.Errorf("read delivery: %w", err)
		}
		found = append(found, o)
	}
	return found, rows.Err()
}

// findOperated finds one delivery in the state that the operator's change is for.
func findOperated(ctx context.Context, tx *Tx, tenant TenantID, id DeliveryID, want StateName) (operated, error) {
	found, err := readOperated(ctx, tx, tenant, []int64{int64(id)})
	switch {
	case err != nil:
		return operated{}, err
	case len(found) == 0:
		return operated{}, fmt.Errorf("find delivery %d: %w", id, ErrNoDelivery)
	case found[0].State != want:
		return found[0], &StateConflict{Delivery: id, State: found[0].State, Want: want}
	}
	return found[0], nil
}

// claimFor raises the fence for a change that an operator claims and settles in one transaction, so that whoever held the delivery before
// is told stale.
func claimFor(ctx context.Context, tx *Tx) (Fence, error) {
	stmt, err := tx.Stmt(ctx, raiseFence)
	if err != nil {
		return 0, err
	}
	var fence Fence
	if err := stmt.QueryRowContext(ctx).Scan(&fence); err != nil {
		return 0, fmt.Errorf("raise fence: %w", err)
	}
	return fence, nil
}

// knows says whether a handler can be given deliveries in this program.
func (d *Dispatcher) knows(name HandlerName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lanes[name] != nil || name == Unrouted
}

// shift is how an operator's commit changes the counts of a handler.
type shift struct{ pending, failed int64 }

// follow has the counts, the lanes and the observer follow the commit of an operator's changes.
func (d *Dispatcher) follow(tx *Tx, shifts map[HandlerName]shift, changes []Change) {
	tx.noRide = true
	tx.AfterCommit(func() {
		d.mu.Lock()
		for name, s := range shifts {
			t := d.tally(name)
			t.pending += s.pending
			t.failed += s.failed
			// The loop notes it between two turns: a turn that is under way did not see this commit, and would take the note for its own.
			d.stirred[name] = true
		}
		d.mu.Unlock()
		d.signal()
		d.observe(changes)
	})
}

// execExactly runs a statement that must change that many rows.
func execExactly(ctx context.Context, tx *Tx, rows int, query string, args ...any) error {
	n, err := execCount(ctx, tx, query, args...)
	if err == nil && n != int64(rows) {
		err = fmt.Errorf("%d rows changed, not %d", n, rows)
	}
	return err
}

// handlersOf lists the registered handlers that a filter names, in order.
func (d *Dispatcher) handlersOf(name HandlerName) ([]HandlerName, error) {
	if name != "" {
		if !d.knows(name) {
			return nil, fmt.Errorf("find handler %s: %w", name, ErrUnknownHandler)
		}
		return []HandlerName{name}, nil
	}
	names := append(d.Handlers(), Unrouted)
	slices.Sort(names)
	return names, nil
}

func deliveryIDs(ctx context.Context, tx *Tx, query string, args ...any) ([]int64, error) {
	stmt, err := tx.Stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return scanIDs(rows)
}

func scanIDs(rows *sql.Rows) ([]int64, error) {
	defer func() { _ = rows.Close() }()
	var list []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}
