package lending

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/uptrace/bun"
)

// look is a query of the branch: one thing by its id, or a page.
type look struct {
	id, cursor string
	limit      int
	list       string // what a page is of
	want       func(*form, string) *form
}

// Validate implements mediator.Query.
func (l look) Validate() error {
	if l.want != nil {
		var f form
		return l.want(&f, l.id).refusal()
	}
	if _, err := paging.Limit(l.limit); err != nil {
		return err
	}
	_, err := paging.Place(l.list, l.cursor)
	return err
}

// Authorize implements mediator.Query.
func (look) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

// Page asks for a part of a list.
type Page struct {
	Cursor string
	Limit  int
}

func (p Page) of(list string) look { return look{cursor: p.Cursor, limit: p.Limit, list: list} }

// Loan reads a loan.
func (m *Module) Loan(ctx context.Context, id string) (Loan, error) {
	q := look{id: id, want: func(f *form, id string) *form { return f.id("id", id) }}
	return mediator.Ask(ctx, m.mediator, q, func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Loan, error) {
		var row loanRow
		err := db.DB.QueryRowContext(ctx, selectLoan, string(by.Tenant), q.id).Scan(row.into()...)
		return row.loan(time.Now()), found(err, errNoLoan, "read loan")
	})
}

// Waiting reservations before this one in its queue. It is a hint: a suspended member is passed over.
const selectPosition = `SELECT count(*) FROM lending_reservations r WHERE r.tenant = ? AND r.work = ? AND r.state = 'waiting'
AND r.place <= (SELECT o.place FROM lending_reservations o WHERE o.tenant = ? AND o.id = ?)`

// Reservation reads a reservation, with its place in the queue.
func (m *Module) Reservation(ctx context.Context, id string) (Reservation, error) {
	q := look{id: id, want: func(f *form, id string) *form { return f.id("id", id) }}
	return mediator.Ask(ctx, m.mediator, q, func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Reservation, error) {
		var row reservationRow
		tenant := string(by.Tenant)
		if err := found(db.DB.QueryRowContext(ctx, selectReservation, tenant, q.id).Scan(row.into()...), errNoReservation, "read reservation"); err != nil {
			return Reservation{}, err
		}
		place := 0
		if err := db.DB.QueryRowContext(ctx, selectPosition, tenant, row.work, tenant, q.id).Scan(&place); err != nil {
			return Reservation{}, fmt.Errorf("read queue: %w", err)
		}
		return row.reservation(place), nil
	})
}

// Reservations is a page of open reservations, in the order of their places.
type Reservations struct {
	Reservations []Reservation      `json:"reservations"`
	Next         *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness    mediator.Freshness `json:"freshness"`
}

const selectReservations = `SELECT r.place, (SELECT count(*) FROM lending_reservations o WHERE o.tenant = r.tenant AND o.work = r.work AND o.state = 'waiting' AND o.place <= r.place),
` + reservationColumns + ` FROM lending_reservations r INDEXED BY lending_reservations_open
WHERE r.tenant = ? AND r.ended_at IS NULL AND r.place > ? ORDER BY r.place LIMIT ?`

// Reservations reads a page of the open reservations.
func (m *Module) Reservations(ctx context.Context, p Page) (Reservations, error) {
	return mediator.Ask(ctx, m.mediator, p.of("reservations"), func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Reservations, error) {
		after := 0
		if text, _ := paging.Place(q.list, q.cursor); text != "" {
			after, _ = strconv.Atoi(text)
		}
		limit, _ := paging.Limit(q.limit)
		page := Reservations{Reservations: []Reservation{}, Freshness: mediator.Immediate}
		last := 0
		more, err := readPage(ctx, db, limit, func(rows *sql.Rows) error {
			var row reservationRow
			var position int
			if err := rows.Scan(append([]any{&last, &position}, row.into()...)...); err != nil {
				return err
			}
			page.Reservations = append(page.Reservations, row.reservation(position))
			return nil
		}, selectReservations, string(by.Tenant), after, limit+1)
		page.Next = next(more, q.list, strconv.Itoa(last))
		return page, err
	})
}

// Loans is a page of open loans, the one that is due first, first.
type Loans struct {
	Loans     []Loan             `json:"loans"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness mediator.Freshness `json:"freshness"`
}

const selectLoans = `SELECT id, member, copy, work, title, borrowed_at, due_at, renewals, returned_at, version FROM lending_loans INDEXED BY lending_loans_due
WHERE tenant = ? AND returned_at IS NULL AND (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?`

// Loans reads a page of the open loans.
func (m *Module) Loans(ctx context.Context, p Page) (Loans, error) {
	return mediator.Ask(ctx, m.mediator, p.of("loans"), func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Loans, error) {
		due, id := loanPlace(q.list, q.cursor)
		limit, _ := paging.Limit(q.limit)
		page := Loans{Loans: []Loan{}, Freshness: mediator.Immediate}
		now, last := time.Now(), ""
		more, err := readPage(ctx, db, limit, func(rows *sql.Rows) error {
			var row loanRow
			if err := rows.Scan(row.into()...); err != nil {
				return err
			}
			last = strconv.FormatInt(row.due, 10) + " " + row.ID
			page.Loans = append(page.Loans, row.loan(now))
			return nil
		}, selectLoans, string(by.Tenant), due, id, limit+1)
		page.Next = next(more, q.list, last)
		return page, err
	})
}

func loanPlace(list, cursor string) (due int64, id string) {
	text, _ := paging.Place(list, cursor)
	_, _ = fmt.Sscanf(text, "%d %s", &due, &id)
	return due, id
}

// found makes of a query's error what its caller is told.
func found(err, none error, what string) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// readPage reads up to limit rows with scan, and reports whether there are more.
func readPage(ctx context.Context, db *bun.DB, limit int, scan func(*sql.Rows) error, query string, args ...any) (more bool, err error) {
	rows, err := db.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("read page: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for n := 0; rows.Next(); n++ {
		if n == limit {
			return true, nil
		}
		if err := scan(rows); err != nil {
			return false, fmt.Errorf("read page: %w", err)
		}
	}
	return false, rows.Err()
}

func next(more bool, list, last string) *string {
	if !more {
		return nil
	}
	cursor := paging.Cursor(list, last)
	return &cursor
}
