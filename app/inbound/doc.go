// Package inbound takes events that come in from outside: POST /v1/inbound/{source}.
//
// A source signs as Standard Webhooks say, with a secret that the operator configured for it. An event is taken once: its id is stored in
// the transaction of what it changed, so that a repetition changes nothing. What an event may do follows from the trust that its record
// gives it: an authoritative one is acted upon, an advisory one is noted and decides nothing.
package inbound
