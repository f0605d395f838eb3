// Package audit reads back what operators did: what posthorn_audit keeps, and the replays, which the outbox keeps beside its deliveries.
package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Replayed is the action of an entry that is a replay.
const Replayed = "delivery.replay"

// Entry is one thing that somebody did.
type Entry struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor" doc:"token:NAME, user:NAME or os:USER"`
	Action  string    `json:"action" example:"destination.pause"`
	Subject string    `json:"subject" doc:"what was acted on: a name, or the id of a message"`
	Detail  string    `json:"detail" doc:"of a replay, its reason"`
	// Of a replay only.
	Delivery outbox.DeliveryID  `json:"delivery,omitempty"`
	Handler  outbox.HandlerName `json:"handler,omitempty"`
	Failure  string             `json:"failure,omitempty" doc:"the failure that the replay answers"`
}

// Page is a part of the list, the newest first.
type Page struct {
	Entries   []Entry            `json:"entries"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last"`
	Freshness mediator.Freshness `json:"freshness"`
}

// List asks for a page.
type List struct {
	Limit  int
	Cursor string
}

// Validate implements mediator.Query.
func (l List) Validate() error {
	if _, err := paging.Limit(l.Limit); err != nil {
		return err
	}
	_, err := l.place()
	return err
}

// Authorize asks for an operator: entries name people.
func (List) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// place is where each of the two lists goes on: below these ids. They are merged by time, but each is walked by id, which no clock can set
// back.
type place struct{ audit, replay int64 }

const newest = 1<<63 - 1

func (l List) place() (place, error) {
	text, err := paging.Place("audit", l.Cursor)
	if err != nil || text == "" {
		return place{newest, newest}, err
	}
	audit, replay, both := strings.Cut(text, ":")
	a, auditErr := strconv.ParseInt(audit, 10, 64)
	r, replayErr := strconv.ParseInt(replay, 10, 64)
	if !both || auditErr != nil || replayErr != nil || a < 0 || r < 0 {
		_, err := paging.Place("audit", "-")
		return place{}, err
	}
	return place{a, r}, nil
}

const (
	selectAudit = `SELECT id, at, actor, action, subject, detail, 0, '', '' FROM posthorn_audit INDEXED BY posthorn_audit_tenant
WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?`
	selectReplays = `SELECT id, replayed_at, actor, '` + Replayed + `', message, reason, delivery, handler, failure FROM outbox_replays INDEXED BY outbox_replays_tenant
WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?`
)

// row is an entry with its place in its list.
type row struct {
	id int64
	Entry
}

// Read reads a page of what was done in the caller's tenant.
func Read(ctx context.Context, m *mediator.Mediator, l List) (Page, error) {
	return mediator.Ask(ctx, m, l, func(ctx context.Context, db *bun.DB, by access.Principal, l List) (Page, error) {
		limit, err := paging.Limit(l.Limit)
		if err != nil {
			return Page{}, err
		}
		at, err := l.place()
		if err != nil {
			return Page{}, err
		}
		done, err := rows(ctx, db, selectAudit, by.Tenant, at.audit, limit+1)
		if err != nil {
			return Page{}, err
		}
		replays, err := rows(ctx, db, selectReplays, by.Tenant, at.replay, limit+1)
		if err != nil {
			return Page{}, err
		}
		return merge(done, replays, at, limit), nil
	})
}

func merge(done, replays []row, at place, limit int) Page {
	page := Page{Entries: []Entry{}, Freshness: mediator.Immediate}
	for len(done)+len(replays) > 0 {
		if len(page.Entries) == limit {
			next := paging.Cursor("audit", fmt.Sprintf("%d:%d", at.audit, at.replay))
			page.Next = &next
			break
		}
		if len(replays) == 0 || len(done) > 0 && !done[0].At.Before(replays[0].At) {
			page.Entries, at.audit, done = append(page.Entries, done[0].Entry), done[0].id, done[1:]
		} else {
			page.Entries, at.replay, replays = append(page.Entries, replays[0].Entry), replays[0].id, replays[1:]
		}
	}
	return page
}

func rows(ctx context.Context, db *bun.DB, query string, tenant outbox.TenantID, below int64, limit int) ([]row, error) {
	found, err := db.DB.QueryContext(ctx, query, string(tenant), below, limit)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	defer func() { _ = found.Close() }()
	var list []row
	for found.Next() {
		var r row
		var at int64
		if err := found.Scan(&r.id, &at, &r.Actor, &r.Action, &r.Subject, &r.Detail, &r.Delivery, &r.Handler, &r.Failure); err != nil {
			return nil, fmt.Errorf("read audit: %w", err)
		}
		r.At = time.UnixMicro(at).UTC()
		list = append(list, r)
	}
	return list, found.Err()
}
