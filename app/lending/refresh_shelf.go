package lending

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var refreshing = mediator.UseCase{Record: "use-cases/refresh-the-popular-shelf"}

// RefreshShelf counts anew what was borrowed most. After a loan begins or ends it runs by itself, from memory (P5); by hand it repeats what
// a crash has lost.
type RefreshShelf struct{}

// UseCase implements mediator.Described.
func (RefreshShelf) UseCase() mediator.UseCase { return refreshing }

// Validate implements mediator.Command.
func (RefreshShelf) Validate() error { return nil }

// Authorize implements mediator.Command.
func (RefreshShelf) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// RefreshShelf carries it out, and answers the shelf.
func (m *Module) RefreshShelf(ctx context.Context) (Shelf, error) {
	return mediator.Send(ctx, m.mediator, RefreshShelf{}, m.refreshShelf)
}

// refreshLater has the shelf refreshed once the work is committed.
func (m *Module) refreshLater(work *mediator.UnitOfWork) {
	by := access.Principal{Actor: "reaction:refresh-the-popular-shelf", Tenant: work.By.Tenant, Role: access.Operator}
	work.AfterCommit(func() {
		m.emitter.Emit("refresh-the-popular-shelf", string(by.Tenant), func(ctx context.Context) error {
			_, err := m.RefreshShelf(access.With(ctx, by))
			return err
		})
	})
}

const (
	clearShelf = `DELETE FROM lending_shelf WHERE tenant = ?`
	fillShelf  = `INSERT INTO lending_shelf(tenant, place, work, title, loans, refreshed_at)
SELECT ?1, row_number() OVER (ORDER BY count(*) DESC, max(borrowed_at) DESC, work), work, max(title), count(*), ?2
FROM lending_loans INDEXED BY lending_loans_borrowed WHERE tenant = ?1 AND borrowed_at >= ?3 GROUP BY work ORDER BY 2 LIMIT ?4`
	selectShelf = `SELECT place, work, title, loans, refreshed_at FROM lending_shelf WHERE tenant = ? ORDER BY place`
)

func (m *Module) refreshShelf(ctx context.Context, work *mediator.UnitOfWork, _ RefreshShelf) (Shelf, error) {
	set := m.records()
	tenant := string(work.By.Tenant)
	if _, err := exec(ctx, work, "clear shelf", clearShelf, tenant); err != nil {
		return Shelf{}, err
	}
	since := work.Now.Add(-set.Duration("lending-shelf-window"))
	if _, err := exec(ctx, work, "fill shelf", fillShelf, tenant, microsOf(work.Now), microsOf(since), set.Int("lending-shelf-size")); err != nil {
		return Shelf{}, err
	}
	m.changed(work, Change{What: "shelf refreshed"})
	stmt, err := work.Stmt(ctx, selectShelf)
	if err != nil {
		return Shelf{}, fmt.Errorf("read shelf: %w", err)
	}
	rows, err := stmt.QueryContext(ctx, tenant)
	if err != nil {
		return Shelf{}, fmt.Errorf("read shelf: %w", err)
	}
	return readShelf(rows)
}

// Shelf is the works that were borrowed most.
type Shelf struct {
	Works       []ShelfEntry `json:"works"`
	RefreshedAt *time.Time   `json:"refreshed_at" doc:"null: it was never refreshed"`
	// The shelf may miss the latest loans.
	Freshness mediator.Freshness `json:"freshness"`
}

// ShelfEntry is a work on the popular shelf.
type ShelfEntry struct {
	Place int    `json:"place"`
	Work  string `json:"work"`
	Title string `json:"title"`
	Loans int    `json:"loans"`
}
