package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var cancelling = mediator.UseCase{Record: "use-cases/cancel-a-reservation", Runs: []string{stepHold}}

// Cancel ends a reservation that is still waiting, or gives up the copy that is held for it.
type Cancel struct{ Reservation string }

// UseCase implements mediator.Described.
func (Cancel) UseCase() mediator.UseCase { return cancelling }

// Validate implements mediator.Command.
func (c Cancel) Validate() error {
	var f form
	return f.id("reservation", c.Reservation).refusal()
}

// Authorize implements mediator.Command.
func (Cancel) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Cancel carries it out.
func (m *Module) Cancel(ctx context.Context, c Cancel, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, done, c, m.cancel)
}

func (m *Module) cancel(ctx context.Context, work *mediator.UnitOfWork, c Cancel) (Reservation, error) {
	r, err := reservationOf(ctx, work, c.Reservation)
	if err != nil {
		return Reservation{}, err
	}
	if r.state != waiting && r.state != ready {
		return Reservation{}, refuse("reservation-ended", "The reservation has ended: it is "+r.state+".", "")
	}
	return m.end(ctx, work, r, cancelled)
}

const endUnfulfilled = `UPDATE lending_reservations SET state = ?, ended_at = ?, version = version + 1 WHERE tenant = ? AND id = ? AND state = ?`

// end ends a reservation without a loan. The copy that was held for it goes back to the shelf, and to the next who waits.
func (m *Module) end(ctx context.Context, work *mediator.UnitOfWork, r reservationRow, as string) (Reservation, error) {
	tenant := string(work.By.Tenant)
	if _, err := exec(ctx, work, "end reservation", endUnfulfilled, as, microsOf(work.Now), tenant, r.id, r.state); err != nil {
		return Reservation{}, err
	}
	if r.state == ready {
		c, err := copyOf(ctx, work, r.copy.String)
		if err != nil {
			return Reservation{}, err
		}
		if err := move(ctx, work, c, onShelf, nil, nil); err != nil {
			return Reservation{}, err
		}
		if err := m.offer(ctx, work, c.id, c.work); err != nil {
			return Reservation{}, err
		}
	}
	m.changed(work, Change{What: as})
	return Reservation{ID: r.id, Member: r.member, Work: r.work, Title: r.title, State: as, PlacedAt: moment(r.placed), Version: r.version + 1, Freshness: mediator.Immediate}, nil
}
