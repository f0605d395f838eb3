package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/posthorn/posthorn/app/audit"
	"github.com/posthorn/posthorn/app/deliveries"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// reasonBody says why. The audit keeps it.
type reasonBody struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"the receiver was mended"`
}

// replaysBody asks for a bulk replay.
type replaysBody struct {
	Filter replayFilter `json:"filter,omitempty" doc:"which dead letters; every one of the tenant when left out"`
	Reason string       `json:"reason,omitempty" maxLength:"500" doc:"required unless dry_run"`
	DryRun bool         `json:"dry_run,omitempty" doc:"count what would be replayed, and change nothing"`
	Cursor string       `json:"cursor,omitempty" doc:"the next of an earlier answer, to go on there"`
}

// replayFilter has the names and meanings of the list of messages, and what only dead letters have.
type replayFilter struct {
	Handler    string  `json:"handler,omitempty" doc:"the name of a handler or destination"`
	Type       string  `json:"type,omitempty" doc:"an event type, in which * stands for any characters"`
	Class      string  `json:"class,omitempty" doc:"the failure class: rejected, failed, gone, expired, cancelled …"`
	Text       string  `json:"q,omitempty" doc:"text in the message's id or in the last error, whatever its case"`
	From       *string `json:"from,omitempty" format:"date-time" doc:"the message did not occur before this time"`
	To         *string `json:"to,omitempty" format:"date-time" doc:"the message occurred before this time"`
	FailedFrom *string `json:"failed_from,omitempty" format:"date-time" doc:"it was not given up before this time"`
	FailedTo   *string `json:"failed_to,omitempty" format:"date-time" doc:"it was given up before this time"`
}

// resendBody asks to send a message again.
type resendBody struct {
	Reason  string `json:"reason" minLength:"1" maxLength:"500" example:"the receiver lost it"`
	Handler string `json:"handler,omitempty" doc:"only to this handler or destination; to each that accepted it when left out"`
}

// givenTime reads a time of a body; the zero time when it is not there.
func givenTime(text *string, path string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, ok := parseMoment(*text)
	if !ok {
		return at, mediator.Violations{{Path: path, Message: "must be a time with its offset: 2026-01-31T09:30:00+01:00"}}.
			Refusal("bad-time", "A value is no time as RFC 3339 writes it.", "")
	}
	return at, nil
}

func (x *exchange) deliveryID() (outbox.DeliveryID, error) {
	id, err := strconv.ParseInt(x.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, mediator.Violations{{Path: "id", Message: "must be the number of a delivery"}}.
			Refusal("bad-id", "No delivery can have such an id.", "GET /v1/messages/{id} names the deliveries of a message.")
	}
	return outbox.DeliveryID(id), nil
}

func (s *server) deliveryRoutes() {
	own := []parameter{tenantParameter}
	type action = func(context.Context, outbox.DeliveryID, string, *mediator.Receipt) (mediator.Answer, error)
	for _, c := range []struct {
		verb, summary, description string
		do                         action
	}{
		{"replay", "Return a dead letter to pending", "Its message keeps its id and its bytes. It may be replayed as often as it dies. The audit keeps who, when, why, and the failure.", s.Deliveries.Replay},
		{"cancel", "Give up a pending delivery", "It becomes a dead letter of the class cancelled, and holds back nothing. While an attempt runs it is refused.", s.Deliveries.Cancel},
		{"skip", "Pass over a dead letter that holds back its ordering key", "It gets the class skipped; the next message of its key is delivered.", s.Deliveries.Skip},
	} {
		add[reasonBody, deliveries.Changed](s, operation{
			method: http.MethodPost, path: "/v1/deliveries/{id}/" + c.verb, tag: "deliveries", summary: c.summary, description: c.description, query: own, keyed: true,
		}, func(x *exchange, in reasonBody) (reply, error) {
			receipt, err := x.receipt()
			if err != nil {
				return reply{}, err
			}
			id, err := x.deliveryID()
			if err != nil {
				return reply{}, err
			}
			answer, err := c.do(x.Context(), id, in.Reason, receipt)
			return x.answer(answer), err
		})
	}
	add[replaysBody, deliveries.Replayed](s, operation{
		method: http.MethodPost, path: "/v1/replays", tag: "deliveries", summary: "Replay every dead letter that a filter meets", query: own,
		description: "Each gets its own audit row, in short commands one after the other. When next is not null there is more: send the same request with that cursor. " +
			"After an answer that was lost, the same request without one does the rest. What dies again meanwhile is not replayed again.",
	}, func(x *exchange, in replaysBody) (reply, error) {
		b := deliveries.Bulk{Handler: in.Filter.Handler, Type: in.Filter.Type, Class: in.Filter.Class, Text: in.Filter.Text, Reason: in.Reason, DryRun: in.DryRun, Cursor: in.Cursor}
		for _, t := range []struct {
			text *string
			path string
			into *time.Time
		}{{in.Filter.From, "/filter/from", &b.From}, {in.Filter.To, "/filter/to", &b.To}, {in.Filter.FailedFrom, "/filter/failed_from", &b.FailedFrom}, {in.Filter.FailedTo, "/filter/failed_to", &b.FailedTo}} {
			var err error
			if *t.into, err = givenTime(t.text, t.path); err != nil {
				return reply{}, err
			}
		}
		done, err := s.Deliveries.ReplayAll(x.Context(), b)
		return reply{http.StatusOK, done}, err
	})
	add[resendBody, deliveries.Resent](s, operation{
		method: http.MethodPost, path: "/v1/messages/{id}/resend", tag: "messages", summary: "Send a dispatched message again", query: own, keyed: true,
		description: "A new delivery to each handler that accepted it, outside the order, with the same message id: a target that suppresses repeats does nothing twice, " +
			"and a handler inside Posthorn answers dispatched, suppressed.",
	}, func(x *exchange, in resendBody) (reply, error) {
		receipt, err := x.receipt()
		if err != nil {
			return reply{}, err
		}
		answer, err := s.Deliveries.Resend(x.Context(), x.PathValue("id"), in.Handler, in.Reason, receipt)
		return x.answer(answer), err
	})
	add[nothing, audit.Page](s, operation{
		method: http.MethodGet, path: "/v1/audit", tag: "audit", summary: "What was done by whom, the newest first", query: []parameter{limitParameter, cursorParameter, tenantParameter},
		description: "Replays are among it, each with the failure that it answers. It needs an operator.",
	}, func(x *exchange, _ nothing) (reply, error) {
		limit, err := x.number("limit")
		if err != nil {
			return reply{}, err
		}
		page, err := audit.Read(x.Context(), s.Mediator, audit.List{Limit: limit, Cursor: x.query.Get("cursor")})
		return reply{http.StatusOK, page}, err
	})
}
