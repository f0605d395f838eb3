package deliveries

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/paging"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Bulk asks to replay every dead letter that a filter meets. It is done in short commands, one after the other, in the order of handlers and
// deliveries; each is complete with its audit rows. So nothing needs to be kept of a bulk replay that was cut short: the same filter
// does the rest, and a cursor goes on without looking at what was passed.
type Bulk struct {
	Handler, Type, Class, Text     string
	From, To, FailedFrom, FailedTo time.Time
	Reason                         string
	DryRun                         bool
	Cursor                         string
}

// Replayed is what a bulk replay did, or would do.
type Replayed struct {
	DryRun   bool         `json:"dry_run"`
	Matched  int64        `json:"matched" doc:"dead letters that the filter met"`
	Replayed int64        `json:"replayed" doc:"of them, returned to pending; 0 in a dry run"`
	Handlers []HandlerSum `json:"handlers" doc:"how many the filter met, by handler and class"`
	// Next is set when there was more than one request does.
	Next *string `json:"next" doc:"the cursor with which the same request goes on; null: it is done"`
}

// HandlerSum counts the dead letters of one handler and class.
type HandlerSum struct {
	Handler outbox.HandlerName `json:"handler"`
	Class   outbox.Class       `json:"class"`
	Count   int64              `json:"count"`
}

const (
	// bulkTime is how long one request works; then it answers with a cursor.
	bulkTime = 5 * time.Second
	maxText  = 200
)

// Validate implements mediator.Query.
func (b Bulk) Validate() error {
	var wrong mediator.Violations
	if b.Handler != "" && !outbox.ValidID(b.Handler) {
		wrong.Add("/handler", "must be the name of a handler or destination")
	}
	if b.Type != "" && (len(b.Type) > 64 || strings.ContainsFunc(b.Type, func(r rune) bool { return r <= ' ' || r > '~' })) {
		wrong.Add("/type", "must be a type, in which * stands for any characters")
	}
	if !utf8.ValidString(b.Text) || utf8.RuneCountInString(b.Text) > maxText {
		wrong.Add("/q", "must have at most "+strconv.Itoa(maxText)+" characters")
	}
	if b.Class != "" && !slices.Contains(outbox.Failures(), outbox.Class(b.Class)) {
		wrong.Add("/class", "must be one of those that a dead letter can have")
	}
	for _, span := range []struct {
		from, to time.Time
		path     string
	}{{b.From, b.To, "/to"}, {b.FailedFrom, b.FailedTo, "/failed_to"}} {
		if !span.from.IsZero() && !span.to.IsZero() && !span.from.Before(span.to) {
			wrong.Add(span.path, "must be later than where the span begins")
		}
	}
	if err := wrong.Refusal("bad-filter", "The filter is not as it should be.", ""); err != nil {
		return err
	}
	if _, err := b.place(); err != nil || b.DryRun {
		return err
	}
	return judgeReason(b.Reason)
}

// Authorize implements mediator.Query.
func (b Bulk) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// place reads the cursor: the fence when the bulk replay began, and where it goes on.
func (b Bulk) place() (after outbox.DeadLetterPlace, err error) {
	text, err := paging.Place("replays", b.Cursor)
	if err != nil || text == "" {
		return after, err
	}
	if parts := strings.Split(text, ":"); len(parts) == 3 {
		fence, fenceErr := strconv.ParseInt(parts[0], 10, 64)
		id, idErr := strconv.ParseInt(parts[2], 10, 64)
		if fenceErr == nil && idErr == nil && fence > 0 && outbox.ValidID(parts[1]) {
			return outbox.DeadLetterPlace{Fence: outbox.Fence(fence), Handler: outbox.HandlerName(parts[1]), ID: outbox.DeliveryID(id)}, nil
		}
	}
	_, err = paging.Place("replays", "-")
	return after, err
}

func cursorOf(p outbox.DeadLetterPlace) string {
	return paging.Cursor("replays", fmt.Sprintf("%d:%s:%d", p.Fence, p.Handler, p.ID))
}

// found is one step of the search.
type found struct {
	letters []outbox.DeadLetterRef
	next    outbox.DeadLetterPlace
	done    bool
}

// ReplayAll replays what the filter meets, or counts it in a dry run. What dies while it is at work is not replayed again by it.
func (s *Module) ReplayAll(ctx context.Context, b Bulk) (Replayed, error) {
	answer := Replayed{DryRun: b.DryRun, Handlers: []HandlerSum{}}
	after, err := b.place()
	if err != nil {
		return answer, err
	}
	for end := time.Now().Add(bulkTime); ; {
		step, err := mediator.Ask(ctx, s.mediator, b, func(ctx context.Context, _ *bun.DB, by access.Principal, b Bulk) (found, error) {
			letters, next, done, err := s.dispatcher.FindDeadLetters(ctx, outbox.DeadLetters{
				Tenant: by.Tenant, Handler: outbox.HandlerName(b.Handler), Type: b.Type, Class: outbox.Class(b.Class), Text: b.Text,
				From: b.From, To: b.To, FailedFrom: b.FailedFrom, FailedTo: b.FailedTo,
			}, after, outbox.ReplayBatch)
			return found{letters, next, done}, err
		})
		if err != nil {
			return answer, refuse(err)
		}
		if step.done {
			return answer, nil
		}
		if len(step.letters) > 0 && !b.DryRun {
			n, err := mediator.Send(ctx, s.mediator, b, func(ctx context.Context, work *mediator.UnitOfWork, b Bulk) (int, error) {
				changed, err := s.dispatcher.ReplayFound(ctx, work.Tx, operator(work, b.Reason), step.letters)
				return len(changed), err
			})
			if err != nil {
				return answer, refuse(err)
			}
			answer.Replayed += int64(n)
		}
		answer.add(step.letters)
		after = step.next
		if time.Now().After(end) {
			next := cursorOf(after)
			answer.Next = &next
			return answer, nil
		}
	}
}

func (r *Replayed) add(letters []outbox.DeadLetterRef) {
	r.Matched += int64(len(letters))
	for _, letter := range letters {
		i := slices.IndexFunc(r.Handlers, func(s HandlerSum) bool { return s.Handler == letter.Handler && s.Class == letter.Class })
		if i < 0 {
			i = len(r.Handlers)
			r.Handlers = append(r.Handlers, HandlerSum{Handler: letter.Handler, Class: letter.Class})
		}
		r.Handlers[i].Count++
	}
}
