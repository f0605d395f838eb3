package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/messages"
)

// messageBody is one event, for a tenant.
type messageBody struct {
	emits.Emit
	Tenant *string `json:"tenant,omitempty" doc:"the caller's own tenant; the machine's own user may name another"`
}

func (s *server) messageRoutes() {
	add[messageBody, messages.Posted](s, operation{
		method: http.MethodPost, path: "/v1/messages", tag: "messages", status: http.StatusCreated, also: []int{http.StatusOK}, keyed: true, stages: true,
		summary: "Stage a fact that has no other transaction",
		description: "Beside a commit of your own this would be a dual write: one of the two can happen without the other. If you change documents, emit in the same " +
			"POST /v1/transactions; if your program has its own SQLite database, stage by INSERT in its transaction (posthorn install). " +
			"Only a fact that nothing else commits belongs here.\n\nThe id, when given, is an idempotency key: with equal content it is answered again (200), with other content refused (409).",
	}, func(x *exchange, in messageBody) (reply, error) {
		receipt, err := x.receipt()
		if err != nil {
			return reply{}, err
		}
		if err := x.actFor(in.Tenant); err != nil {
			return reply{}, err
		}
		answer, err := s.Messages.Post(x.Context(), in.Emit, receipt)
		return x.answer(answer), err
	})
	add[nothing, messages.Page](s, operation{
		method: http.MethodGet, path: "/v1/messages", tag: "messages", summary: "List messages, the newest first",
		description: "A page looks at a bounded number of rows, so it can be short, even empty, and still have a next. Keep the filters between pages.",
		query: []parameter{
			{"state", "dead-letter, processing, pending or dispatched; beside handler, the state of the delivery to it"},
			{"type", "an event type, in which * stands for any characters"}, {"handler", "the name of a handler or destination"},
			{"from", "not before this time (RFC 3339 with offset)"}, {"to", "before this time"},
			{"q", "text in the id or in a last error, whatever its case"}, limitParameter, cursorParameter, tenantParameter,
		},
	}, func(x *exchange, _ nothing) (reply, error) {
		list := messages.List{State: x.query.Get("state"), Type: x.query.Get("type"), Handler: x.query.Get("handler"), Text: x.query.Get("q"), Cursor: x.query.Get("cursor")}
		var err error
		if list.From, err = x.moment("from"); err != nil {
			return reply{}, err
		}
		if list.To, err = x.moment("to"); err != nil {
			return reply{}, err
		}
		if list.Limit, err = x.number("limit"); err != nil {
			return reply{}, err
		}
		page, err := s.Messages.List(x.Context(), list)
		return reply{http.StatusOK, page}, err
	})
	add[nothing, messages.Detail](s, operation{
		method: http.MethodGet, path: "/v1/messages/{id}", tag: "messages", summary: "Read a message with its deliveries, attempts and replays", query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		detail, err := s.Messages.Get(x.Context(), messages.Get{ID: x.PathValue("id")})
		return reply{http.StatusOK, detail}, err
	})
	add[nothing, bytesOf](s, operation{
		method: http.MethodGet, path: "/v1/messages/{id}/payload", tag: "messages", summary: "Read a payload, byte for byte as it was staged", query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		payload, err := s.Messages.Payload(x.Context(), messages.Get{ID: x.PathValue("id")})
		if err != nil {
			return reply{}, err
		}
		header := x.w.Header()
		header.Set("Content-Type", payload.ContentType)
		header.Set("Content-Disposition", `attachment; filename="`+x.PathValue("id")+`"`)
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		if payload.Bytes == nil {
			payload.Bytes = []byte{}
		}
		return reply{http.StatusOK, payload.Bytes}, nil
	})
}
