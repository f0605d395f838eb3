package lending

import (
	"context"
	"database/sql"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

var reserving = mediator.UseCase{Record: "use-cases/reserve-a-work"}

// Reserve puts a member into the queue of a work of which no copy is free.
type Reserve struct {
	Member string `json:"member" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"M-17"`
	Work   string `json:"work" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" example:"moby-dick"`
}

// UseCase implements mediator.Described.
func (Reserve) UseCase() mediator.UseCase { return reserving }

// Validate implements mediator.Command.
func (r Reserve) Validate() error {
	var f form
	return f.number("/member", r.Member).work("/work", r.Work).refusal()
}

// Authorize implements mediator.Command.
func (Reserve) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Reserve carries it out.
func (m *Module) Reserve(ctx context.Context, c Reserve, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, made, c, m.reserve)
}

const (
	selectWork = `SELECT min(title),
  (SELECT count(*) FROM lending_reservations r WHERE r.tenant = ?1 AND r.member = ?3 AND r.work = ?2 AND r.ended_at IS NULL),
  (SELECT count(*) FROM lending_loans l WHERE l.tenant = ?1 AND l.member = ?3 AND l.work = ?2 AND l.returned_at IS NULL)
FROM lending_copies WHERE tenant = ?1 AND work = ?2`

	insertReservation = `INSERT INTO lending_reservations(tenant, id, member, work, title, placed_at) VALUES (?, ?, ?, ?, ?, ?)`
)

func (m *Module) reserve(ctx context.Context, work *mediator.UnitOfWork, c Reserve) (Reservation, error) {
	a, err := accountOf(ctx, work, c.Member)
	if err != nil {
		return Reservation{}, err
	}
	tenant := string(work.By.Tenant)
	var title sql.NullString
	var reserved, borrowed bool
	if _, err := find(ctx, work, "read work", selectWork, []any{tenant, c.Work, c.Member}, &title, &reserved, &borrowed); err != nil {
		return Reservation{}, err
	}
	if !title.Valid {
		return Reservation{}, missing("unknown-work", "The branch has no copy of this work.")
	}
	q, err := queueOf(ctx, work, c.Work, c.Member)
	if err != nil {
		return Reservation{}, err
	}
	if err := m.rules().mayReserve(a, q, reserved, borrowed); err != nil {
		return Reservation{}, err
	}
	r := Reservation{ID: string(outbox.NewMessageID()), Member: c.Member, Work: c.Work, Title: title.String, State: waiting, PlacedAt: work.Now,
		Position: &Position{Number: q.waiting + 1, Freshness: decidedByTheJourney}, Version: 1, Freshness: mediator.Immediate}
	if _, err := exec(ctx, work, "write reservation", insertReservation, tenant, r.ID, r.Member, r.Work, r.Title, microsOf(r.PlacedAt)); err != nil {
		return Reservation{}, err
	}
	m.changed(work, Change{What: "reserved"})
	return r, nil
}
