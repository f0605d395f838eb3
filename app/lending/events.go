package lending

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// The integration events of the branch.
const (
	eventBorrowed   = "loan-borrowed"
	eventReturned   = "loan-returned"
	eventSuspended  = "member-suspended"
	eventReinstated = "member-reinstated"
)

// loanBorrowed is loan-borrowed in version 2, the one that the handlers know. Version 1 lacks when the copy was borrowed and which
// reservation the loan fulfils.
type loanBorrowed struct {
	Loan        string    `json:"loan"`
	Member      string    `json:"member"`
	Copy        string    `json:"copy"`
	Work        string    `json:"work"`
	Title       string    `json:"title"`
	DueAt       time.Time `json:"due_at"`
	BorrowedAt  time.Time `json:"borrowed_at"`
	Reservation *string   `json:"reservation"`
}

// loanBorrowed1 is loan-borrowed in version 1.
type loanBorrowed1 struct {
	Loan   string    `json:"loan"`
	Member string    `json:"member"`
	Copy   string    `json:"copy"`
	Work   string    `json:"work"`
	Title  string    `json:"title"`
	DueAt  time.Time `json:"due_at"`
}

// liftBorrowed makes version 2 of version 1 (P29): the event was staged in the transaction of the loan, so it occurred when the copy was
// borrowed; which reservation the loan fulfilled is not known any more.
func liftBorrowed(m outbox.Message) ([]byte, error) {
	var old loanBorrowed1
	if err := json.Unmarshal(m.Payload, &old); err != nil {
		return nil, fmt.Errorf("read %s version 1: %w", eventBorrowed, err)
	}
	return json.Marshal(loanBorrowed{Loan: old.Loan, Member: old.Member, Copy: old.Copy, Work: old.Work, Title: old.Title, DueAt: old.DueAt, BorrowedAt: m.OccurredAt})
}

// emitBorrowed emits in the version that the setting says, so that every reader is deployed before the writer (P36).
func (m *Module) emitBorrowed(work *mediator.UnitOfWork, l Loan, reservation string) error {
	version := m.records().Int("lending-loan-borrowed-version")
	var payload any = loanBorrowed1{Loan: l.ID, Member: l.Member, Copy: l.Copy, Work: l.Work, Title: l.Title, DueAt: l.DueAt}
	if version >= 2 {
		v2 := loanBorrowed{Loan: l.ID, Member: l.Member, Copy: l.Copy, Work: l.Work, Title: l.Title, DueAt: l.DueAt, BorrowedAt: l.BorrowedAt}
		if reservation != "" {
			v2.Reservation = &reservation
		}
		payload = v2
	}
	return m.emit(work, eventBorrowed, version, "loans/"+l.ID, payload)
}

type loanReturned struct {
	Loan       string    `json:"loan"`
	Member     string    `json:"member"`
	Copy       string    `json:"copy"`
	Work       string    `json:"work"`
	Title      string    `json:"title"`
	ReturnedAt time.Time `json:"returned_at"`
	Late       bool      `json:"late"`
}

func (m *Module) emitReturned(work *mediator.UnitOfWork, l Loan, late bool) error {
	return m.emit(work, eventReturned, 1, "loans/"+l.ID,
		loanReturned{Loan: l.ID, Member: l.Member, Copy: l.Copy, Work: l.Work, Title: l.Title, ReturnedAt: *l.ReturnedAt, Late: late})
}

// Readers says what the handlers of the branch can read (P35).
func Readers() *outbox.Readers {
	r := outbox.NewReaders()
	r.Read(outbox.IntegrationEvent, eventBorrowed, 2)
	r.Upcast(eventBorrowed, 1, liftBorrowed)
	r.Read(outbox.IntegrationEvent, eventReturned, 1)
	for _, name := range []string{stepHold, stepNotify, stepExpire} {
		r.Read(outbox.JourneyStep, name, 1)
	}
	r.Read(outbox.ProviderEffect, effectNotice, 1)
	return r
}
