package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var expiring = mediator.UseCase{Record: "journeys/" + journey, Step: stepExpire, Runs: []string{stepHold}}

// ExpirePickup ends a reservation whose copy was not collected in time. It is scheduled when the copy is held.
type ExpirePickup struct {
	Reservation string `json:"reservation"`
}

// UseCase implements mediator.Described.
func (ExpirePickup) UseCase() mediator.UseCase { return expiring }

// Validate implements mediator.Command.
func (e ExpirePickup) Validate() error {
	var f form
	return f.id("/reservation", e.Reservation).refusal()
}

// Authorize implements mediator.Command.
func (ExpirePickup) Authorize(by access.Principal) error { return by.Require(access.Operator) }

func (m *Module) expirePickup(ctx context.Context, work *mediator.UnitOfWork, c ExpirePickup) (nothing, error) {
	r, err := reservationOf(ctx, work, c.Reservation)
	if err != nil || r.state != ready {
		return nothing{}, err // collected or cancelled in time
	}
	_, err = m.end(ctx, work, r, expired)
	return nothing{}, err
}
