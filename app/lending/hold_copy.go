package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var holding = mediator.UseCase{Record: "journeys/" + journey, Step: stepHold, Runs: []string{stepNotify, stepExpire}}

// HoldCopy takes a copy that came back from the shelf and holds it for the first who waits for its work.
type HoldCopy struct {
	Copy string `json:"copy"`
}

// UseCase implements mediator.Described.
func (HoldCopy) UseCase() mediator.UseCase { return holding }

// Validate implements mediator.Command.
func (h HoldCopy) Validate() error {
	var f form
	return f.number("/copy", h.Copy).refusal()
}

// Authorize implements mediator.Command.
func (HoldCopy) Authorize(by access.Principal) error { return by.Require(access.Operator) }

const (
	// Nothing is held for a suspended member; the place in the queue stays.
	selectNextWaiting = `SELECT ` + reservationColumns + ` FROM lending_reservations r INDEXED BY lending_reservations_queue
JOIN lending_members m ON m.tenant = r.tenant AND m.id = r.member
WHERE r.tenant = ? AND r.work = ? AND r.state = 'waiting' AND m.suspended = 0 ORDER BY r.place LIMIT 1`

	makeReady = `UPDATE lending_reservations SET state = 'ready', copy = ?, pickup_until = ?, version = version + 1 WHERE tenant = ? AND id = ? AND state = 'waiting'`
)

func (m *Module) holdCopy(ctx context.Context, work *mediator.UnitOfWork, c HoldCopy) (nothing, error) {
	copied, err := copyOf(ctx, work, c.Copy)
	if err != nil {
		return nothing{}, err
	}
	if copied.state != onShelf {
		return nothing{}, nil // an earlier step, or a clerk, was quicker
	}
	var r reservationRow
	ok, err := find(ctx, work, "find who waits", selectNextWaiting, []any{string(work.By.Tenant), copied.work}, r.into()...)
	if err != nil || !ok {
		return nothing{}, err
	}
	until := work.Now.Add(m.rules().PickupTime)
	if _, err := exec(ctx, work, "hold copy", makeReady, copied.id, microsOf(until), string(work.By.Tenant), r.id); err != nil {
		return nothing{}, err
	}
	if err := move(ctx, work, copied, held, nil, r.id); err != nil {
		return nothing{}, err
	}
	m.changed(work, Change{What: ready})
	if err := m.run(work, kindStep, stepNotify, never, NotifyMember{Reservation: r.id}); err != nil {
		return nothing{}, err
	}
	return nothing{}, m.run(work, kindStep, stepExpire, until, ExpirePickup{Reservation: r.id})
}
