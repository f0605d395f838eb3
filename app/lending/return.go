package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var returning = mediator.UseCase{Record: "use-cases/return-a-copy", Emits: []string{eventReturned}, Runs: []string{stepHold}}

// Return ends the loan of a copy.
type Return struct {
	Copy string `json:"copy" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"C-204"`
}

// UseCase implements mediator.Described.
func (Return) UseCase() mediator.UseCase { return returning }

// Validate implements mediator.Command.
func (r Return) Validate() error {
	var f form
	return f.number("/copy", r.Copy).refusal()
}

// Authorize implements mediator.Command.
func (Return) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Return carries it out.
func (m *Module) Return(ctx context.Context, c Return, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, done, c, m.giveBack)
}

const endLoan = `UPDATE lending_loans SET returned_at = ?, version = version + 1 WHERE tenant = ? AND id = ? AND returned_at IS NULL`

func (m *Module) giveBack(ctx context.Context, work *mediator.UnitOfWork, c Return) (Loan, error) {
	copied, err := copyOf(ctx, work, c.Copy)
	if err != nil {
		return Loan{}, err
	}
	if copied.state != onLoan {
		return Loan{}, refuse("not-on-loan", "The copy is not on loan.", "")
	}
	var row loanRow
	if ok, err := find(ctx, work, "read loan", selectLoan, []any{string(work.By.Tenant), copied.loan.String}, row.into()...); err != nil {
		return Loan{}, err
	} else if !ok {
		return Loan{}, errNoLoan
	}
	late := overdue(work.Now, moment(row.due), false)
	if _, err := exec(ctx, work, "end loan", endLoan, microsOf(work.Now), string(work.By.Tenant), row.ID); err != nil {
		return Loan{}, err
	}
	if err := move(ctx, work, copied, onShelf, nil, nil); err != nil {
		return Loan{}, err
	}
	loan := row.loan(work.Now)
	at := work.Now
	loan.ReturnedAt, loan.Overdue, loan.Version = &at, false, loan.Version+1
	m.changed(work, Change{Loan: loan.ID, Version: loan.Version, What: "returned"})
	m.refreshLater(work)
	if err := m.emitReturned(work, loan, late); err != nil {
		return Loan{}, err
	}
	return loan, m.offer(ctx, work, copied.id, copied.work)
}
