package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var collecting = mediator.UseCase{Record: "use-cases/collect-a-reservation", Emits: []string{eventBorrowed}}

// Collect lends the copy that is held for a reservation to the member who made it.
type Collect struct{ Reservation string }

// UseCase implements mediator.Described.
func (Collect) UseCase() mediator.UseCase { return collecting }

// Validate implements mediator.Command.
func (c Collect) Validate() error {
	var f form
	return f.id("reservation", c.Reservation).refusal()
}

// Authorize implements mediator.Command.
func (Collect) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Collect carries it out.
func (m *Module) Collect(ctx context.Context, c Collect, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, made, c, m.collect)
}

func (m *Module) collect(ctx context.Context, work *mediator.UnitOfWork, c Collect) (Loan, error) {
	r, err := reservationOf(ctx, work, c.Reservation)
	if err != nil {
		return Loan{}, err
	}
	if r.state != ready {
		return Loan{}, refuse("not-ready", "No copy is held for this reservation: it is "+r.state+".", "")
	}
	copied, err := copyOf(ctx, work, r.copy.String)
	if err != nil {
		return Loan{}, err
	}
	return m.lend(ctx, work, r.member, copied)
}
