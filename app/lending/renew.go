package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var renewing = mediator.UseCase{Record: "use-cases/renew-a-loan"}

// Renew gives a loan another loan period.
type Renew struct{ Loan string }

// UseCase implements mediator.Described.
func (Renew) UseCase() mediator.UseCase { return renewing }

// Validate implements mediator.Command.
func (r Renew) Validate() error {
	var f form
	return f.id("loan", r.Loan).refusal()
}

// Authorize implements mediator.Command.
func (Renew) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Renew carries it out.
func (m *Module) Renew(ctx context.Context, c Renew, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, done, c, m.renew)
}

const (
	selectLoan = `SELECT id, member, copy, work, title, borrowed_at, due_at, renewals, returned_at, version FROM lending_loans WHERE tenant = ? AND id = ?`
	renewLoan  = `UPDATE lending_loans SET due_at = ?, renewals = renewals + 1, version = version + 1 WHERE tenant = ? AND id = ? AND returned_at IS NULL`
)

func (m *Module) renew(ctx context.Context, work *mediator.UnitOfWork, c Renew) (Loan, error) {
	var row loanRow
	ok, err := find(ctx, work, "read loan", selectLoan, []any{string(work.By.Tenant), c.Loan}, row.into()...)
	switch {
	case err != nil:
		return Loan{}, err
	case !ok:
		return Loan{}, errNoLoan
	case row.returned.Valid:
		return Loan{}, refuse("loan-returned", "The loan has ended: its copy was returned.", "")
	}
	a, err := accountOf(ctx, work, row.Member)
	if err != nil {
		return Loan{}, err
	}
	q, err := queueOf(ctx, work, row.Work, row.Member)
	if err != nil {
		return Loan{}, err
	}
	loan := row.loan(work.Now)
	if loan.DueAt, err = m.rules().renewed(work.Now, loan.DueAt, loan.Renewals, a, q); err != nil {
		return Loan{}, err
	}
	if _, err := exec(ctx, work, "renew loan", renewLoan, microsOf(loan.DueAt), string(work.By.Tenant), c.Loan); err != nil {
		return Loan{}, err
	}
	loan.Renewals++
	loan.Version++
	loan.Overdue = false
	m.changed(work, Change{Loan: loan.ID, Version: loan.Version, What: "renewed"})
	return loan, nil
}
