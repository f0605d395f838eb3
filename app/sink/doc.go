// Package sink is a receiver for people who test what at-least-once delivery does to theirs. It does what a good receiver does —
// verifies the signature over the bytes it got, handles each message once and suppresses repeats by message id — shows that
// it did, and misbehaves on demand.
//
// A request is handled when it is verified and its message was not handled before; a repeat is answered 200 without being handled
// again. Messages are told apart by path and webhook-id, so that several destinations can share one sink. What was handled is remembered
// for the last Config.Remember messages and, with a journal, across restarts.
//
// The journal has one JSON line for each delivery, written before its answer: a delivery that was acknowledged is in the journal.
//
// Three addresses under /_sink/ are its own; everything else takes deliveries:
//
//	GET  /_sink/stats      counters
//	GET  /_sink/misbehave  the misbehaviour in force
//	POST /_sink/misbehave  replaces it; {} behaves again
package sink
