package lending

import (
	"context"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

var notifying = mediator.UseCase{Record: "journeys/" + journey, Step: stepNotify, Runs: []string{effectNotice}}

// NotifyMember has the member told that a copy is held.
type NotifyMember struct {
	Reservation string `json:"reservation"`
}

// UseCase implements mediator.Described.
func (NotifyMember) UseCase() mediator.UseCase { return notifying }

// Validate implements mediator.Command.
func (n NotifyMember) Validate() error {
	var f form
	return f.id("/reservation", n.Reservation).refusal()
}

// Authorize implements mediator.Command.
func (NotifyMember) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Notice is the payload of the provider effect: what to tell whom. How it is said is the integration's (P52).
type Notice struct {
	// About is pickup or due.
	About string    `json:"about"`
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Title string    `json:"title"`
	Until time.Time `json:"until"`
}

const (
	selectNotice = `SELECT m.name, m.email FROM lending_members m WHERE m.tenant = ? AND m.id = ?`
	markNotified = `UPDATE lending_reservations SET notified_at = ?, version = version + 1 WHERE tenant = ? AND id = ? AND notified_at IS NULL`
)

func (m *Module) notifyMember(ctx context.Context, work *mediator.UnitOfWork, c NotifyMember) (nothing, error) {
	r, err := reservationOf(ctx, work, c.Reservation)
	if err != nil || r.state != ready || r.notified.Valid {
		return nothing{}, err // collected, cancelled or told already
	}
	if _, err := exec(ctx, work, "mark as notified", markNotified, microsOf(work.Now), string(work.By.Tenant), r.id); err != nil {
		return nothing{}, err
	}
	m.changed(work, Change{What: "notified"})
	return nothing{}, m.tell(ctx, work, "pickup", r.member, r.title, moment(r.until.Int64))
}

// tell stages a notice to a member.
func (m *Module) tell(ctx context.Context, work *mediator.UnitOfWork, about, member, title string, until time.Time) error {
	n := Notice{About: about, Title: title, Until: until}
	ok, err := find(ctx, work, "read member", selectNotice, []any{string(work.By.Tenant), member}, &n.Name, &n.Email)
	if err != nil {
		return err
	}
	if !ok {
		return missing("unknown-member", "There is no such member.")
	}
	return m.run(work, outbox.ProviderEffect, effectNotice, never, n)
}
