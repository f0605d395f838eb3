// Package notices tells members of a library something, by a provider that sends mail or text messages: the target of the provider effect
// lending-notice.
//
// What the branch stages says what is to be told, to whom; how it is put into words, and into the provider's request, is decided here and
// nowhere else (P52). A notice is delivered at least once. Each request carries the message's id as its Idempotency-Key, so that a provider
// that has seen it sends nothing again (P19).
//
// Without a provider's address the notices are appended to a file, a line each, for whoever prints and posts them; a line that comes again
// has the same key.
package notices
