// Package lending is a branch of a library: members, copies, loans and reservations. It is the product's reference domain, and shows every
// kind of effect that a use case can have.
//
//   - Borrowing and returning emit the integration events loan-borrowed and loan-returned, which reach the statistics, the due notices and
//     every destination as deliveries of their own.
//   - A reservation is fulfilled by a journey: hold-copy, notify-member, expire-pickup. Each step is a command of its own, dispatched
//     through the mediator in the transaction of its delivery.
//   - A notice to a member is a provider effect, delivered by app/integrations/notices.
//   - Refreshing the popular shelf is an excluded reaction: it runs after the commit, from memory, and is repeated by hand when it is lost.
//   - Who is suspended is decided outside, and comes in as an inbound event.
//
// The rules are in rules.go, as functions of what was read in the unit of work. All their numbers are setting records. UseCases lists what
// the package does; a new use case is its file, its record, its test and an entry there.
package lending
