package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var counting = mediator.UseCase{Record: "reactions/count-loans"}

// countLoan is what the statistics take from an event. The message's own mark in the inbox makes it count once (P18, P19).
type countLoan struct {
	Work  string `json:"work"`
	Title string `json:"title"`
}

// UseCase implements mediator.Described.
func (countLoan) UseCase() mediator.UseCase { return counting }

// Validate implements mediator.Command.
func (c countLoan) Validate() error {
	var f form
	return f.work("/work", c.Work).refusal()
}

// Authorize implements mediator.Command.
func (countLoan) Authorize(by access.Principal) error { return by.Require(access.Operator) }

const upsertStatistics = `INSERT INTO lending_statistics(tenant, work, title, borrowed, returned) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, work) DO UPDATE SET borrowed = borrowed + excluded.borrowed, returned = returned + excluded.returned, title = excluded.title`

func (m *Module) countBorrowed(ctx context.Context, work *mediator.UnitOfWork, c countLoan) (nothing, error) {
	return m.addUp(ctx, work, c, 1, 0)
}

func (m *Module) countReturned(ctx context.Context, work *mediator.UnitOfWork, c countLoan) (nothing, error) {
	return m.addUp(ctx, work, c, 0, 1)
}

func (m *Module) addUp(ctx context.Context, work *mediator.UnitOfWork, c countLoan, borrowed, returned int) (nothing, error) {
	_, err := exec(ctx, work, "count loan", upsertStatistics, string(work.By.Tenant), c.Work, c.Title, borrowed, returned)
	m.changed(work, Change{What: "counted", Statistics: true})
	return nothing{}, err
}
