package lending

import (
	"context"
	"net/mail"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var registering = mediator.UseCase{Record: "use-cases/register-a-member"}

// RegisterMember takes somebody on as a member.
type RegisterMember struct {
	ID    string `json:"id" doc:"the number on the member's card" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"M-17"`
	Name  string `json:"name" minLength:"1" maxLength:"120"`
	Email string `json:"email" doc:"where notices go" maxLength:"200"`
}

// UseCase implements mediator.Described.
func (RegisterMember) UseCase() mediator.UseCase { return registering }

// Validate implements mediator.Command.
func (r RegisterMember) Validate() error {
	var f form
	f.number("/id", r.ID).text("/name", r.Name, 120)
	if address, err := mail.ParseAddress(r.Email); err != nil || address.Address != r.Email || len(r.Email) > 200 {
		f.Add("/email", "must be an address such as ada@example.org")
	}
	return f.refusal()
}

// Authorize implements mediator.Command.
func (RegisterMember) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// RegisterMember carries it out.
func (m *Module) RegisterMember(ctx context.Context, c RegisterMember, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, made, c, m.registerMember)
}

const insertMember = `INSERT INTO lending_members(tenant, id, name, email, standing_at, registered_at) VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING`

func (m *Module) registerMember(ctx context.Context, work *mediator.UnitOfWork, c RegisterMember) (Member, error) {
	n, err := exec(ctx, work, "register member", insertMember, string(work.By.Tenant), c.ID, c.Name, c.Email, microsOf(work.Now))
	if err != nil {
		return Member{}, err
	}
	if n == 0 {
		return Member{}, refuse("member-exists", "There is a member with this number.", "Take the next number.")
	}
	m.changed(work, Change{What: "registered"})
	return Member{ID: c.ID, Name: c.Name, Email: c.Email, RegisteredAt: work.Now, Freshness: mediator.Immediate}, nil
}
