// Package mediator is the one way into the product's use cases. A command passes, in this order:
//
//	Validate → Authorize → one unit of work in the store's writer → its handler → staging of what it raised → COMMIT → after-commit functions
//
// The messages that a handler raises are staged by the post-handler in the unit of work of the change itself (P6), so there is no change
// without its messages and no message without its change. Nothing here dispatches: the commit makes messages eligible, and the
// dispatcher finds them by itself (P13).
//
// A handler may run more than once, when a neighbour spoils the transaction that the writer shares between commands. Each run has a
// UnitOfWork of its own and must not assume that an earlier one happened.
//
//	type rename struct{ ID, Name string }
//
//	func (r rename) Validate() error                      { … }
//	func (r rename) Authorize(by access.Principal) error { return by.Require(access.Operator) }
//
//	version, err := mediator.Send(ctx, m, rename{…}, func(ctx context.Context, work *mediator.UnitOfWork, r rename) (int64, error) {
//		…change rows through work.Tx…
//		work.Raise(outbox.Message{Type: "member-renamed", Payload: …})
//		return version, nil
//	})
//
// Queries pass Validate and Authorize, and read from the pool of query-only connections.
package mediator
