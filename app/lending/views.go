package lending

import (
	"context"
	"database/sql"
	"time"

	"github.com/posthorn/posthorn/app/mediator"
)

// Member is somebody who may borrow.
type Member struct {
	ID           string             `json:"id"`
	Name         string             `json:"name"`
	Email        string             `json:"email"`
	Suspended    bool               `json:"suspended"`
	Note         string             `json:"note,omitempty" doc:"why the standing is as it is, or what an advisory event said"`
	Loans        int                `json:"loans"`
	RegisteredAt time.Time          `json:"registered_at"`
	Freshness    mediator.Freshness `json:"freshness"`
}

// Copy is one copy of a work.
type Copy struct {
	ID          string             `json:"id"`
	Work        string             `json:"work"`
	Title       string             `json:"title"`
	State       string             `json:"state" enum:"shelf,loan,held"`
	Loan        string             `json:"loan,omitempty"`
	Reservation string             `json:"reservation,omitempty"`
	Freshness   mediator.Freshness `json:"freshness"`
}

// Loan is a copy that a member has, or had.
type Loan struct {
	ID         string             `json:"id"`
	Member     string             `json:"member"`
	Copy       string             `json:"copy"`
	Work       string             `json:"work"`
	Title      string             `json:"title"`
	BorrowedAt time.Time          `json:"borrowed_at"`
	DueAt      time.Time          `json:"due_at"`
	Renewals   int                `json:"renewals"`
	ReturnedAt *time.Time         `json:"returned_at"`
	Overdue    bool               `json:"overdue"`
	Version    int64              `json:"version"`
	Freshness  mediator.Freshness `json:"freshness"`
}

// Reservation is a member's place in the queue of a work, until it is fulfilled or ends otherwise.
type Reservation struct {
	ID          string             `json:"id"`
	Member      string             `json:"member"`
	Work        string             `json:"work"`
	Title       string             `json:"title"`
	State       string             `json:"state" enum:"waiting,ready,collected,expired,cancelled"`
	PlacedAt    time.Time          `json:"placed_at"`
	Copy        string             `json:"copy,omitempty" doc:"the copy that is held, or was"`
	PickupUntil *time.Time         `json:"pickup_until,omitempty" doc:"until when it is held"`
	NotifiedAt  *time.Time         `json:"notified_at,omitempty" doc:"when the notice to the member was staged"`
	Loan        string             `json:"loan,omitempty"`
	Position    *Position          `json:"position,omitempty" doc:"waiting only"`
	Version     int64              `json:"version"`
	Freshness   mediator.Freshness `json:"freshness"`
}

// Position is a place in a queue. It is a hint: who is next is decided when a copy comes back.
type Position struct {
	Number    int                `json:"number" doc:"1 is the next"`
	Freshness mediator.Freshness `json:"freshness"`
}

// decidedByTheJourney is the freshness of a place in a queue (P43).
var decidedByTheJourney = mediator.Freshness{Mode: "advisory", Authority: "journeys/" + journey}

var errNoLoan = missing("unknown-loan", "There is no such loan.")

// loanRow is a row of lending_loans.
type loanRow struct {
	Loan
	borrowed, due int64
	returned      sql.NullInt64
}

func (l *loanRow) into() []any {
	return []any{&l.ID, &l.Member, &l.Copy, &l.Work, &l.Title, &l.borrowed, &l.due, &l.Renewals, &l.returned, &l.Version}
}

// loan is the loan as it is at a time.
func (l *loanRow) loan(now time.Time) Loan {
	v := l.Loan
	v.BorrowedAt, v.DueAt, v.Freshness = moment(l.borrowed), moment(l.due), mediator.Immediate
	v.ReturnedAt = momentOrNone(l.returned)
	v.Overdue = overdue(now, v.DueAt, l.returned.Valid)
	return v
}

func momentOrNone(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	at := moment(micros.Int64)
	return &at
}

// reservationRow is a row of lending_reservations.
type reservationRow struct {
	id, member, work, title, state string
	placed, version                int64
	copy, loan                     sql.NullString
	until, notified                sql.NullInt64
}

const reservationColumns = `r.id, r.member, r.work, r.title, r.state, r.placed_at, r.version, r.copy, r.loan, r.pickup_until, r.notified_at`

const selectReservation = `SELECT ` + reservationColumns + ` FROM lending_reservations r WHERE r.tenant = ? AND r.id = ?`

var errNoReservation = missing("unknown-reservation", "There is no such reservation.")

func (r *reservationRow) into() []any {
	return []any{&r.id, &r.member, &r.work, &r.title, &r.state, &r.placed, &r.version, &r.copy, &r.loan, &r.until, &r.notified}
}

func (r *reservationRow) reservation(place int) Reservation {
	v := Reservation{ID: r.id, Member: r.member, Work: r.work, Title: r.title, State: r.state, PlacedAt: moment(r.placed), Copy: r.copy.String, Loan: r.loan.String,
		NotifiedAt: momentOrNone(r.notified), Version: r.version, Freshness: mediator.Immediate}
	if r.state == ready {
		v.PickupUntil = momentOrNone(r.until)
	}
	if r.state == waiting {
		v.Position = &Position{Number: place, Freshness: decidedByTheJourney}
	}
	return v
}

func reservationOf(ctx context.Context, work *mediator.UnitOfWork, id string) (r reservationRow, err error) {
	ok, err := find(ctx, work, "read reservation", selectReservation, []any{string(work.By.Tenant), id}, r.into()...)
	if err == nil && !ok {
		err = errNoReservation
	}
	return r, err
}
