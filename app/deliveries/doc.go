// Package deliveries is what operators do to deliveries by hand: replay a dead letter or many, cancel what is pending, pass over a dead
// letter that holds back its ordering key, and send a dispatched message again. Each change has its audit row in its own transaction, with
// the actor and the reason (P34); the message itself is never touched.
package deliveries
