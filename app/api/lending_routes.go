package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/mediator"
)

// lendingRoutes serve the branch. Every command takes an Idempotency-Key; what a rule forbids is a 409 with the rule's code.
func (s *server) lendingRoutes() {
	l := s.Lending
	change[lending.RegisterMember, lending.Member](s, "/v1/lending/members", http.StatusCreated, "Register a member", l.RegisterMember)
	change[lending.AddCopy, lending.Copy](s, "/v1/lending/copies", http.StatusCreated, "Put a copy on the shelf", l.AddCopy)
	change[lending.Borrow, lending.Loan](s, "/v1/lending/loans", http.StatusCreated, "Lend a copy to a member", l.Borrow)
	change[lending.Return, lending.Loan](s, "/v1/lending/returns", http.StatusOK, "Take a copy back", l.Return)
	change[lending.Reserve, lending.Reservation](s, "/v1/lending/reservations", http.StatusCreated, "Put a member into the queue of a work", l.Reserve)
	act[lending.Loan](s, "/v1/lending/loans/{id}/renew", http.StatusOK, "Renew a loan",
		func(ctx context.Context, id string, r *mediator.Receipt) (mediator.Answer, error) {
			return l.Renew(ctx, lending.Renew{Loan: id}, r)
		})
	act[lending.Reservation](s, "/v1/lending/reservations/{id}/cancel", http.StatusOK, "Cancel a reservation",
		func(ctx context.Context, id string, r *mediator.Receipt) (mediator.Answer, error) {
			return l.Cancel(ctx, lending.Cancel{Reservation: id}, r)
		})
	act[lending.Loan](s, "/v1/lending/reservations/{id}/collect", http.StatusCreated, "Lend the copy that is held for a reservation",
		func(ctx context.Context, id string, r *mediator.Receipt) (mediator.Answer, error) {
			return l.Collect(ctx, lending.Collect{Reservation: id}, r)
		})
	add[nothing, lending.Shelf](s, operation{method: http.MethodPost, path: "/v1/lending/popular-shelf/refresh", tag: "lending", query: []parameter{tenantParameter},
		summary:     "Count anew what was borrowed most",
		description: "This happens by itself after a loan begins or ends, from memory; by hand it repeats what a crash has lost."},
		func(x *exchange, _ nothing) (reply, error) {
			shelf, err := l.RefreshShelf(x.Context())
			return reply{http.StatusOK, shelf}, err
		})

	one(s, "/v1/lending/loans/{id}", "Read a loan", l.Loan)
	one(s, "/v1/lending/reservations/{id}", "Read a reservation and its place in the queue", l.Reservation)
	leaf(s, "/v1/lending/loans", "List the open loans, the one that is due first, first", l.Loans)
	leaf(s, "/v1/lending/reservations", "List the open reservations, in the order of their places", l.Reservations)
	leaf(s, "/v1/lending/members", "List the members", l.Members)
	leaf(s, "/v1/lending/copies", "List the copies", l.Copies)
	whole(s, "/v1/lending/desk", "See what was lent last, what is overdue and who waits", l.Desk)
	whole(s, "/v1/lending/statistics", "See how often works were borrowed and returned", l.Statistics)
	whole(s, "/v1/lending/popular-shelf", "See what was borrowed most, as it was last counted", l.PopularShelf)
}

// change serves a command with a body.
func change[In, Out any](s *server, path string, status int, summary string, do func(context.Context, In, *mediator.Receipt) (mediator.Answer, error)) {
	add[In, Out](s, operation{method: http.MethodPost, path: path, tag: "lending", status: status, keyed: true, stages: true, summary: summary, query: []parameter{tenantParameter}},
		func(x *exchange, in In) (reply, error) {
			receipt, err := x.receipt()
			if err != nil {
				return reply{}, err
			}
			answer, err := do(x.Context(), in, receipt)
			return x.answer(answer), err
		})
}

// act serves a command whose path says all.
func act[Out any](s *server, path string, status int, summary string, do func(ctx context.Context, id string, r *mediator.Receipt) (mediator.Answer, error)) {
	add[nothing, Out](s, operation{method: http.MethodPost, path: path, tag: "lending", status: status, keyed: true, stages: true, summary: summary, query: []parameter{tenantParameter}},
		func(x *exchange, _ nothing) (reply, error) {
			receipt, err := x.receipt()
			if err != nil {
				return reply{}, err
			}
			answer, err := do(x.Context(), x.PathValue("id"), receipt)
			return x.answer(answer), err
		})
}

// one serves a query for one thing.
func one[Out any](s *server, path, summary string, read func(context.Context, string) (Out, error)) {
	add[nothing, Out](s, operation{method: http.MethodGet, path: path, tag: "lending", summary: summary, query: []parameter{tenantParameter}},
		func(x *exchange, _ nothing) (reply, error) {
			found, err := read(x.Context(), x.PathValue("id"))
			return reply{http.StatusOK, found}, err
		})
}

// leaf serves a page of a list.
func leaf[Out any](s *server, path, summary string, read func(context.Context, lending.Page) (Out, error)) {
	add[nothing, Out](s, operation{method: http.MethodGet, path: path, tag: "lending", summary: summary, query: []parameter{limitParameter, cursorParameter, tenantParameter}},
		func(x *exchange, _ nothing) (reply, error) {
			limit, err := x.number("limit")
			if err != nil {
				return reply{}, err
			}
			page, err := read(x.Context(), lending.Page{Cursor: x.query.Get("cursor"), Limit: limit})
			return reply{http.StatusOK, page}, err
		})
}

// whole serves a query that asks for nothing in particular.
func whole[Out any](s *server, path, summary string, read func(context.Context) (Out, error)) {
	add[nothing, Out](s, operation{method: http.MethodGet, path: path, tag: "lending", summary: summary, query: []parameter{tenantParameter}},
		func(x *exchange, _ nothing) (reply, error) {
			found, err := read(x.Context())
			return reply{http.StatusOK, found}, err
		})
}
