package api

import (
	"net/http"

	"github.com/posthorn/posthorn/app/documents"
)

var (
	limitParameter  = parameter{"limit", "how many entries a page has at most: 1 to 200, 50 when left out"}
	cursorParameter = parameter{"cursor", "the next of the page before"}
)

// transactionBody is a transaction, for a tenant.
type transactionBody struct {
	documents.Transaction
	Tenant *string `json:"tenant,omitempty" doc:"the caller's own tenant; the machine's own user may name another"`
}

func (s *server) documentRoutes() {
	add[transactionBody, documents.Outcome](s, operation{
		method: http.MethodPost, path: "/v1/transactions", tag: "documents", status: http.StatusCreated, keyed: true, stages: true,
		summary: "Change documents and say what happened, in one transaction",
		description: "Changes and messages are committed together or not at all. A repetition, by Idempotency-Key or by the id of its first message that has one, " +
			"is answered like the first time and changes nothing.",
	}, func(x *exchange, in transactionBody) (reply, error) {
		receipt, err := x.receipt()
		if err != nil {
			return reply{}, err
		}
		if err := x.actFor(in.Tenant); err != nil {
			return reply{}, err
		}
		answer, err := s.Documents.Transact(x.Context(), in.Transaction, receipt)
		return x.answer(answer), err
	})
	add[nothing, documents.Found](s, operation{
		method: http.MethodGet, path: "/v1/documents/{collection}/{id}", tag: "documents", summary: "Read a document", query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		found, err := s.Documents.Get(x.Context(), documents.Get{Collection: x.PathValue("collection"), ID: x.PathValue("id")})
		return reply{http.StatusOK, found}, err
	})
	add[nothing, documents.Page](s, operation{
		method: http.MethodGet, path: "/v1/documents/{collection}", tag: "documents", summary: "List a collection, in the order of ids",
		query: []parameter{limitParameter, cursorParameter, tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		limit, err := x.number("limit")
		if err != nil {
			return reply{}, err
		}
		page, err := s.Documents.List(x.Context(), documents.List{Collection: x.PathValue("collection"), Cursor: x.query.Get("cursor"), Limit: limit})
		return reply{http.StatusOK, page}, err
	})
}

// noDocumentRoutes answers those who look for documents beside another program's database.
func (s *server) noDocumentRoutes() {
	off := &Problem{Status: http.StatusNotFound, Code: "documents-off", Detail: "There are no documents beside another program's database.",
		Hint: "Keep data in that program's own tables, and stage by INSERT INTO outbox_messages in the transaction that changes them."}
	for _, path := range []string{"/v1/transactions", "/v1/documents/"} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			answer := *off
			answer.write(w)
		})
	}
}
