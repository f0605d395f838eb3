package lending

import (
	"context"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

var borrowing = mediator.UseCase{Record: "use-cases/borrow-a-copy", Emits: []string{eventBorrowed}}

// Borrow lends a copy to a member. A copy that is held for the member is collected by it.
type Borrow struct {
	Member string `json:"member" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"M-17"`
	Copy   string `json:"copy" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$" example:"C-204"`
}

// UseCase implements mediator.Described.
func (Borrow) UseCase() mediator.UseCase { return borrowing }

// Validate implements mediator.Command.
func (b Borrow) Validate() error {
	var f form
	return f.number("/member", b.Member).number("/copy", b.Copy).refusal()
}

// Authorize implements mediator.Command.
func (Borrow) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Borrow carries it out.
func (m *Module) Borrow(ctx context.Context, c Borrow, receipt *mediator.Receipt) (mediator.Answer, error) {
	return send(ctx, m, receipt, made, c, m.borrow)
}

func (m *Module) borrow(ctx context.Context, work *mediator.UnitOfWork, c Borrow) (Loan, error) {
	copied, err := copyOf(ctx, work, c.Copy)
	if err != nil {
		return Loan{}, err
	}
	return m.lend(ctx, work, c.Member, copied)
}

const (
	insertLoan = `INSERT INTO lending_loans(tenant, id, member, copy, work, title, borrowed_at, due_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

	endCollected = `UPDATE lending_reservations SET state = 'collected', copy = ?, loan = ?, ended_at = ?, version = version + 1
WHERE tenant = ? AND id = ? AND ended_at IS NULL`

	selectOwn = `SELECT id, coalesce(copy, '') FROM lending_reservations WHERE tenant = ? AND member = ? AND work = ? AND ended_at IS NULL`
)

// lend is what borrowing and collecting have in common.
func (m *Module) lend(ctx context.Context, work *mediator.UnitOfWork, member string, c copyRow) (Loan, error) {
	rules := m.rules()
	a, err := accountOf(ctx, work, member)
	if err != nil {
		return Loan{}, err
	}
	q, err := queueOf(ctx, work, c.work, member)
	if err != nil {
		return Loan{}, err
	}
	tenant := string(work.By.Tenant)
	var own, heldCopy string // the member's own reservation of this work, and the copy that is held for it
	if _, err := find(ctx, work, "read reservation", selectOwn, []any{tenant, member, c.work}, &own, &heldCopy); err != nil {
		return Loan{}, err
	}
	if err := mayTake(c.state, heldCopy == c.id, q); err != nil {
		return Loan{}, err
	}
	if heldCopy != "" && heldCopy != c.id {
		return Loan{}, refuse("other-copy-held", "Another copy is held for the member.", "Lend that one.")
	}
	if err := rules.mayBorrow(work.Now, a); err != nil {
		return Loan{}, err
	}
	loan := Loan{ID: string(outbox.NewMessageID()), Member: member, Copy: c.id, Work: c.work, Title: c.title, BorrowedAt: work.Now,
		DueAt: work.Now.Add(rules.LoanPeriod), Version: 1, Freshness: mediator.Immediate}
	if _, err := exec(ctx, work, "write loan", insertLoan, tenant, loan.ID, member, c.id, c.work, c.title, microsOf(loan.BorrowedAt), microsOf(loan.DueAt)); err != nil {
		return Loan{}, err
	}
	if own != "" {
		if _, err := exec(ctx, work, "end reservation", endCollected, c.id, loan.ID, microsOf(work.Now), tenant, own); err != nil {
			return Loan{}, err
		}
	}
	if err := move(ctx, work, c, onLoan, loan.ID, nil); err != nil {
		return Loan{}, err
	}
	m.changed(work, Change{Loan: loan.ID, Version: 1, What: "borrowed"})
	m.refreshLater(work)
	return loan, m.emitBorrowed(work, loan, own)
}
