// Package crash holds tests that kill the real program. They drive it over HTTP as any client would, receive its webhooks, and keep their
// own journal of what was acknowledged, refused and received.
package crash
