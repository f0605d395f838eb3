package lending

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/uptrace/bun"
)

// Members is a page of members, by number.
type Members struct {
	Members   []Member           `json:"members"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness mediator.Freshness `json:"freshness"`
}

const selectMembers = `SELECT id, name, email, suspended, standing_note, registered_at,
  (SELECT count(*) FROM lending_loans l WHERE l.tenant = m.tenant AND l.member = m.id AND l.returned_at IS NULL)
FROM lending_members m WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`

// Members reads a page of the members.
func (m *Module) Members(ctx context.Context, p Page) (Members, error) {
	return mediator.Ask(ctx, m.mediator, p.of("members"), func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Members, error) {
		after, _ := paging.Place(q.list, q.cursor)
		limit, _ := paging.Limit(q.limit)
		page := Members{Members: []Member{}, Freshness: mediator.Immediate}
		last := ""
		more, err := readPage(ctx, db, limit, func(rows *sql.Rows) error {
			v := Member{Freshness: mediator.Immediate}
			var registered int64
			if err := rows.Scan(&v.ID, &v.Name, &v.Email, &v.Suspended, &v.Note, &registered, &v.Loans); err != nil {
				return err
			}
			v.RegisteredAt, last = moment(registered), v.ID
			page.Members = append(page.Members, v)
			return nil
		}, selectMembers, string(by.Tenant), after, limit+1)
		page.Next = next(more, q.list, last)
		return page, err
	})
}

// Copies is a page of copies, by number.
type Copies struct {
	Copies    []Copy             `json:"copies"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness mediator.Freshness `json:"freshness"`
}

const selectCopies = `SELECT id, work, title, state, coalesce(loan, ''), coalesce(reservation, '') FROM lending_copies WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`

// Copies reads a page of the copies.
func (m *Module) Copies(ctx context.Context, p Page) (Copies, error) {
	return mediator.Ask(ctx, m.mediator, p.of("copies"), func(ctx context.Context, db *bun.DB, by access.Principal, q look) (Copies, error) {
		after, _ := paging.Place(q.list, q.cursor)
		limit, _ := paging.Limit(q.limit)
		page := Copies{Copies: []Copy{}, Freshness: mediator.Immediate}
		last := ""
		more, err := readPage(ctx, db, limit, func(rows *sql.Rows) error {
			v := Copy{Freshness: mediator.Immediate}
			if err := rows.Scan(&v.ID, &v.Work, &v.Title, &v.State, &v.Loan, &v.Reservation); err != nil {
				return err
			}
			last = v.ID
			page.Copies = append(page.Copies, v)
			return nil
		}, selectCopies, string(by.Tenant), after, limit+1)
		page.Next = next(more, q.list, last)
		return page, err
	})
}

// Statistics counts what the events told.
type Statistics struct {
	Works     []Counted          `json:"works" doc:"the most borrowed first"`
	Freshness mediator.Freshness `json:"freshness"`
}

// Counted is one work of the statistics.
type Counted struct {
	Work     string `json:"work"`
	Title    string `json:"title"`
	Borrowed int64  `json:"borrowed"`
	Returned int64  `json:"returned"`
}

// statisticsDecidedBy: the counts follow the loans by as much as the delivery takes.
var statisticsDecidedBy = mediator.Freshness{Mode: "advisory", Authority: "reactions/count-loans"}

const selectStatistics = `SELECT work, title, borrowed, returned FROM lending_statistics WHERE tenant = ? ORDER BY borrowed DESC, work LIMIT ?`

// Statistics reads the counts of the works that were borrowed most.
func (m *Module) Statistics(ctx context.Context) (Statistics, error) {
	return mediator.Ask(ctx, m.mediator, Page{}.of("statistics"), func(ctx context.Context, db *bun.DB, by access.Principal, _ look) (Statistics, error) {
		s := Statistics{Works: []Counted{}, Freshness: statisticsDecidedBy}
		_, err := readPage(ctx, db, paging.MaxLimit, func(rows *sql.Rows) error {
			var c Counted
			if err := rows.Scan(&c.Work, &c.Title, &c.Borrowed, &c.Returned); err != nil {
				return err
			}
			s.Works = append(s.Works, c)
			return nil
		}, selectStatistics, string(by.Tenant), paging.MaxLimit)
		return s, err
	})
}

// PopularShelf reads the shelf as it was last refreshed.
func (m *Module) PopularShelf(ctx context.Context) (Shelf, error) {
	return mediator.Ask(ctx, m.mediator, Page{}.of("shelf"), func(ctx context.Context, db *bun.DB, by access.Principal, _ look) (Shelf, error) {
		rows, err := db.DB.QueryContext(ctx, selectShelf, string(by.Tenant))
		if err != nil {
			return Shelf{}, fmt.Errorf("read shelf: %w", err)
		}
		return readShelf(rows)
	})
}

func readShelf(rows *sql.Rows) (Shelf, error) {
	defer func() { _ = rows.Close() }()
	s := Shelf{Works: []ShelfEntry{}, Freshness: mediator.Freshness{Mode: "advisory", Authority: "reactions/refresh-the-popular-shelf"}}
	for rows.Next() {
		var e ShelfEntry
		var at int64
		if err := rows.Scan(&e.Place, &e.Work, &e.Title, &e.Loans, &at); err != nil {
			return s, fmt.Errorf("read shelf: %w", err)
		}
		refreshed := moment(at)
		s.RefreshedAt = &refreshed
		s.Works = append(s.Works, e)
	}
	return s, rows.Err()
}

// Desk is what a clerk has in view: what was lent last, what is due first, and who waits.
type Desk struct {
	OnLoan       int64              `json:"on_loan"`
	Overdue      int64              `json:"overdue"`
	Latest       []Loan             `json:"latest" doc:"the latest loans, ended ones included"`
	Reservations []Reservation      `json:"reservations" doc:"ready for pick-up, then waiting, in the order of the queues"`
	At           time.Time          `json:"at"`
	Freshness    mediator.Freshness `json:"freshness"`
}

const (
	deskRows     = 20
	selectCounts = `SELECT count(*), coalesce(sum(due_at < ?2), 0) FROM lending_loans INDEXED BY lending_loans_due WHERE tenant = ?1 AND returned_at IS NULL`
	selectLatest = `SELECT id, member, copy, work, title, borrowed_at, due_at, renewals, returned_at, version FROM lending_loans INDEXED BY lending_loans_borrowed
WHERE tenant = ? ORDER BY borrowed_at DESC LIMIT ?`
)

// Desk reads the desk.
func (m *Module) Desk(ctx context.Context) (Desk, error) {
	reservations, err := m.Reservations(ctx, Page{Limit: deskRows})
	if err != nil {
		return Desk{}, err
	}
	return mediator.Ask(ctx, m.mediator, Page{}.of("desk"), func(ctx context.Context, db *bun.DB, by access.Principal, _ look) (Desk, error) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		d := Desk{Latest: []Loan{}, Reservations: reservations.Reservations, At: now, Freshness: mediator.Immediate}
		if err := db.DB.QueryRowContext(ctx, selectCounts, string(by.Tenant), microsOf(now)).Scan(&d.OnLoan, &d.Overdue); err != nil {
			return d, fmt.Errorf("count loans: %w", err)
		}
		_, err := readPage(ctx, db, deskRows, func(rows *sql.Rows) error {
			var row loanRow
			if err := rows.Scan(row.into()...); err != nil {
				return err
			}
			d.Latest = append(d.Latest, row.loan(now))
			return nil
		}, selectLatest, string(by.Tenant), deskRows)
		return d, err
	})
}
