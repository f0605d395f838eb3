// Package messages is the use cases of the outbox that callers see: posting a message, and reading outbox records back.
//
// Posting is right only for a fact that has no other transaction. Beside somebody else's commit it would be a dual write: one of the two
// can happen without the other (P11). Whoever changes documents emits in the same transaction, and a program with a database of its own
// stages in that database's transaction.
package messages
