package messages

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Get asks for one message.
type Get struct{ ID string }

// Validate implements mediator.Query.
func (g Get) Validate() error {
	if outbox.ValidID(g.ID) {
		return nil
	}
	return mediator.Violations{{Path: "id", Message: "must be 1 to 64 of A-Z a-z 0-9 _ -"}}.Refusal("bad-id", "No message can have such an id.", "")
}

// Authorize implements mediator.Query.
func (g Get) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

// Get reads a message with its deliveries, their failed attempts and replays.
func (s *Module) Get(ctx context.Context, g Get) (Detail, error) {
	return mediator.Ask(ctx, s.mediator, g, func(ctx context.Context, db *bun.DB, by access.Principal, g Get) (Detail, error) {
		m, err := outbox.FindMessage(ctx, db.DB, by.Tenant, outbox.MessageID(g.ID))
		if err != nil {
			return Detail{}, missing(err)
		}
		detail := detailOf(m, s.version(m), by.Role.Allows(access.Operator))
		s.lease(detail.Deliveries)
		return detail, nil
	})
}

// version is what classifies a message's payload.
func (s *Module) version(m outbox.MessageRecord) *records.Version {
	if event, ok := s.judge.Records().IntegrationEvent(m.Type); ok && m.Kind == outbox.IntegrationEvent {
		if version, ok := event.Version(m.SchemaVersion); ok {
			return version
		}
	}
	return records.Undeclared()
}

var errClassified = &mediator.Refusal{Kind: mediator.Forbidden, Code: "classified-payload", Sentence: "The payload has fields that your role may not see.",
	Hint: "GET /v1/messages/{id} shows the rest of it, masked; operators see all of it."}

// Payload is a payload as it was staged.
type Payload struct {
	ContentType string
	Bytes       []byte
}

// Payload reads a payload, byte for byte as it was staged. A viewer is refused one with a closed field: its bytes are all or nothing.
func (s *Module) Payload(ctx context.Context, g Get) (Payload, error) {
	return mediator.Ask(ctx, s.mediator, g, func(ctx context.Context, db *bun.DB, by access.Principal, g Get) (p Payload, err error) {
		if by.Role.Allows(access.Operator) {
			p.ContentType, p.Bytes, err = outbox.FindPayload(ctx, db.DB, by.Tenant, outbox.MessageID(g.ID))
			return p, missing(err)
		}
		m, err := outbox.FindMessage(ctx, db.DB, by.Tenant, outbox.MessageID(g.ID))
		if err != nil {
			return p, missing(err)
		}
		if _, masked := s.version(m).Mask(m.Payload, isJSON(m)); len(masked) > 0 {
			return p, errClassified
		}
		return Payload{ContentType: m.ContentType, Bytes: m.Payload}, nil
	})
}

func missing(err error) error {
	if !errors.Is(err, outbox.ErrNoMessage) {
		return err
	}
	return &mediator.Refusal{Kind: mediator.Missing, Code: "no-message", Sentence: "There is no such message.",
		Hint: "It may belong to another tenant, or have passed its retention.", At: []mediator.Violation{{Path: "id", Message: "must name a message"}}}
}

// List asks for a page of messages, the newest first.
type List struct {
	State, Type, Handler, Text string
	From, To                   time.Time
	Limit                      int
	Cursor                     string
}

// Page is a part of a list. It can be shorter than its limit, even empty, and still have a next.
type Page struct {
	Messages  []Summary          `json:"messages"`
	Next      *string            `json:"next" doc:"the cursor of the next page; null: this is the last. A page looks at a bounded number of rows, so a short or empty one can have a next"`
	Freshness mediator.Freshness `json:"freshness"`
}

var typeFilter = regexp.MustCompile(`^[a-z0-9*-]{1,64}$`)

const maxText = 200

// Validate implements mediator.Query.
func (l List) Validate() error {
	var wrong mediator.Violations
	switch outbox.StateName(l.State) {
	case "", outbox.StatePending, outbox.StateProcessing, outbox.StateDispatched, outbox.StateDeadLetter:
	default:
		wrong.Add("state", "must be pending, processing, dispatched or dead-letter")
	}
	if l.Type != "" && !typeFilter.MatchString(l.Type) {
		wrong.Add("type", "must be an event type, in which * stands for any characters")
	}
	if l.Handler != "" && !outbox.ValidID(l.Handler) {
		wrong.Add("handler", "must be the name of a handler or destination")
	}
	if utf8.RuneCountInString(l.Text) > maxText {
		wrong.Add("q", "must have at most "+strconv.Itoa(maxText)+" characters")
	}
	if !l.From.IsZero() && !l.To.IsZero() && !l.From.Before(l.To) {
		wrong.Add("to", "must be later than from")
	}
	if err := wrong.Refusal("bad-filter", "The filter is not as it should be.", ""); err != nil {
		return err
	}
	if _, err := paging.Limit(l.Limit); err != nil {
		return err
	}
	_, err := l.place()
	return err
}

// Authorize implements mediator.Query.
func (l List) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

// list tells the places of lists in different orders apart.
func (l List) list() string {
	if l.State == "" || outbox.StateName(l.State) == outbox.StateDispatched {
		return "messages"
	}
	return l.State
}

func (l List) place() (outbox.Place, error) {
	text, err := paging.Place(l.list(), l.Cursor)
	if err != nil || text == "" {
		return 0, err
	}
	place, err := strconv.ParseInt(text, 10, 64)
	if err != nil || place < 1 {
		_, err := paging.Place(l.list(), "-")
		return 0, err
	}
	return outbox.Place(place), nil
}

// List reads a page of the caller's messages.
func (s *Module) List(ctx context.Context, l List) (Page, error) {
	return mediator.Ask(ctx, s.mediator, l, func(ctx context.Context, db *bun.DB, by access.Principal, l List) (Page, error) {
		after, err := l.place()
		if err != nil {
			return Page{}, err
		}
		limit, err := paging.Limit(l.Limit)
		if err != nil {
			return Page{}, err
		}
		found, err := outbox.ListMessages(ctx, db.DB, outbox.Filter{
			Tenant: by.Tenant, State: outbox.StateName(l.State), Type: l.Type, Handler: outbox.HandlerName(l.Handler), From: l.From, To: l.To, Text: l.Text,
		}, after, limit)
		if err != nil {
			return Page{}, err
		}
		page := Page{Messages: make([]Summary, len(found.Messages)), Freshness: mediator.Immediate}
		for i, m := range found.Messages {
			page.Messages[i] = summaryOf(m)
			s.lease(page.Messages[i].Deliveries)
		}
		if found.Next != 0 {
			next := paging.Cursor(l.list(), strconv.FormatInt(int64(found.Next), 10))
			page.Next = &next
		}
		return page, nil
	})
}
