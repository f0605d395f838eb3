package documents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/uptrace/bun"
)

// Document is a document as it is read.
type Document struct {
	Collection string          `json:"collection"`
	ID         string          `json:"id"`
	Version    int64           `json:"version"`
	ChangedAt  time.Time       `json:"changed_at"`
	Body       json.RawMessage `json:"body"`
}

// Found is one document with its freshness.
type Found struct {
	Document
	Freshness mediator.Freshness `json:"freshness"`
}

// Page is a part of a collection, in the order of ids.
type Page struct {
	Documents []Document         `json:"documents"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness mediator.Freshness `json:"freshness"`
}

// Get asks for one document.
type Get struct{ Collection, ID string }

// Validate implements mediator.Query.
func (g Get) Validate() error {
	var wrong mediator.Violations
	if !validCollection(g.Collection) {
		wrong.Add("collection", collectionForm)
	}
	if !validID(g.ID) {
		wrong.Add("id", idForm)
	}
	return wrong.Refusal("bad-id", "No document can have such a name.", "")
}

// Authorize implements mediator.Query.
func (g Get) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

const selectDocument = `SELECT id, version, changed_at, body FROM documents WHERE tenant = ? AND collection = ? AND id = ? AND body IS NOT NULL`

// Get reads a document.
func (d *Module) Get(ctx context.Context, g Get) (Found, error) {
	return mediator.Ask(ctx, d.mediator, g, func(ctx context.Context, db *bun.DB, by access.Principal, g Get) (Found, error) {
		doc, err := scan(db.DB.QueryRowContext(ctx, selectDocument, string(by.Tenant), g.Collection, g.ID), g.Collection)
		if errors.Is(err, sql.ErrNoRows) {
			if err := known(ctx, db, by, g.Collection); err != nil {
				return Found{}, err
			}
			return Found{}, missing("id", "must name a document that exists")
		}
		if err != nil {
			return Found{}, fmt.Errorf("read document: %w", err)
		}
		return Found{Document: doc, Freshness: mediator.Immediate}, nil
	})
}

// List asks for a page of a collection.
type List struct {
	Collection, Cursor string
	Limit              int
}

// Validate implements mediator.Query.
func (l List) Validate() error {
	if !validCollection(l.Collection) {
		return Get{Collection: l.Collection, ID: "-"}.Validate()
	}
	if _, err := paging.Limit(l.Limit); err != nil {
		return err
	}
	_, err := paging.Place("documents", l.Cursor)
	return err
}

// Authorize implements mediator.Query.
func (l List) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

const (
	// A deleted document keeps its row, so a page looks at a bounded number of rows rather than until it is full.
	listScan = 1000
	// listBytes bounds the bodies of a page; it has at least one document whatever its size.
	listBytes = 4 << 20

	selectPage = `SELECT id, version, changed_at, body FROM documents WHERE tenant = ? AND collection = ? AND id > ? ORDER BY id LIMIT ?`
)

// List reads a page of a collection.
func (d *Module) List(ctx context.Context, l List) (Page, error) {
	return mediator.Ask(ctx, d.mediator, l, func(ctx context.Context, db *bun.DB, by access.Principal, l List) (Page, error) {
		after, err := paging.Place("documents", l.Cursor)
		if err != nil {
			return Page{}, err
		}
		if err := known(ctx, db, by, l.Collection); err != nil {
			return Page{}, err
		}
		limit, _ := paging.Limit(l.Limit)
		rows, err := db.DB.QueryContext(ctx, selectPage, string(by.Tenant), l.Collection, after, listScan)
		if err != nil {
			return Page{}, fmt.Errorf("list documents: %w", err)
		}
		defer func() { _ = rows.Close() }()
		page := Page{Documents: []Document{}, Freshness: mediator.Immediate}
		seen, size := 0, 0
		for rows.Next() {
			if len(page.Documents) == limit || size >= listBytes {
				page.more(after)
				return page, nil
			}
			doc, err := scan(rows, l.Collection)
			if err != nil {
				return Page{}, fmt.Errorf("list documents: %w", err)
			}
			seen++
			after = doc.ID
			if doc.Body != nil {
				page.Documents = append(page.Documents, doc)
				size += len(doc.Body)
			}
		}
		if err := rows.Err(); err != nil {
			return Page{}, fmt.Errorf("list documents: %w", err)
		}
		if seen == listScan {
			page.more(after)
		}
		return page, nil
	})
}

func (p *Page) more(after string) {
	next := paging.Cursor("documents", after)
	p.Next = &next
}

func scan(row interface{ Scan(...any) error }, collection string) (Document, error) {
	doc := Document{Collection: collection}
	var changed int64
	var body []byte
	if err := row.Scan(&doc.ID, &doc.Version, &changed, &body); err != nil {
		return doc, err
	}
	doc.ChangedAt, doc.Body = time.UnixMicro(changed).UTC(), body
	return doc, nil
}

const selectCollection = `SELECT EXISTS (SELECT 1 FROM documents WHERE tenant = ? AND collection = ?)`

// known refuses a collection that never had a document.
func known(ctx context.Context, db *bun.DB, by access.Principal, collection string) error {
	var exists bool
	if err := db.DB.QueryRowContext(ctx, selectCollection, string(by.Tenant), collection).Scan(&exists); err != nil {
		return fmt.Errorf("look for collection: %w", err)
	}
	if exists {
		return nil
	}
	return &mediator.Refusal{Kind: mediator.Missing, Code: "unknown-collection", Sentence: "There is no such collection.",
		Hint: "A collection begins with its first document: POST /v1/transactions.",
		At:   []mediator.Violation{{Path: "collection", Message: "must name a collection that had a document"}}}
}
