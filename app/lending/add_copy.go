package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var adding = mediator.UseCase{Record: "use-cases/add-a-copy", Runs: []string{stepHold}}

// AddCopy puts a copy of a work on the shelf.
type AddCopy struct {
	ID    string `json:"id" doc:"the number on the copy" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"C-204"`
	Work  string `json:"work" doc:"what it is a copy of; copies of one work fulfil the same reservations" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" example:"moby-dick"`
	Title string `json:"title" minLength:"1" maxLength:"200"`
}

// UseCase implements mediator.Described.
func (AddCopy) UseCase() mediator.UseCase { return adding }

// Validate implements mediator.Command.
func (a AddCopy) Validate() error {
	var f form
	return f.number("/id", a.ID).work("/work", a.Work).text("/title", a.Title, 200).refusal()
}

// Authorize implements mediator.Command.
func (AddCopy) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// AddCopy carries it out.
func (m *Module) AddCopy(ctx context.Context, c AddCopy, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, made, c, m.addCopy)
}

const insertCopy = `INSERT INTO lending_copies(tenant, id, work, title, added_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

func (m *Module) addCopy(ctx context.Context, work *mediator.UnitOfWork, c AddCopy) (Copy, error) {
	n, err := exec(ctx, work, "add copy", insertCopy, string(work.By.Tenant), c.ID, c.Work, c.Title, microsOf(work.Now))
	if err != nil {
		return Copy{}, err
	}
	if n == 0 {
		return Copy{}, refuse("copy-exists", "There is a copy with this number.", "Take the next number.")
	}
	m.changed(work, Change{What: "added"})
	return Copy{ID: c.ID, Work: c.Work, Title: c.Title, State: onShelf, Freshness: mediator.Immediate}, m.offer(ctx, work, c.ID, c.Work)
}

// offer begins the journey's next step with a copy that has come to the shelf, when somebody waits for it.
func (m *Module) offer(ctx context.Context, work *mediator.UnitOfWork, id, of string) error {
	q, err := queueOf(ctx, work, of, "")
	if err != nil || q.waiting == 0 {
		return err
	}
	return m.run(work, kindStep, stepHold, never, HoldCopy{Copy: id})
}
