// Package webhook delivers messages to HTTP targets: a POST of the stored payload, byte for byte, signed as Standard Webhooks ask.
//
// A request carries webhook-id (the message id, the same on every attempt: the key by which a target suppresses repeats), webhook-timestamp
// and webhook-signature (one signature for each secret in force, so that secrets rotate with an overlap), posthorn-attempt,
// posthorn-fence (a target that stores the highest fence can refuse a late worker), posthorn-type, posthorn-schema-version, and
// traceparent when the message has one.
//
// What an answer means:
//
//	2xx                                delivered, as soon as the head of the answer is read, however its body ends
//	429, 503 with a usable Retry-After throttled
//	no DNS, connect, TLS; reset        unreachable, until the first byte of an answer
//	408, 425, 5xx, time-out            failed; also an answer that breaks off in its head or is no HTTP
//	other 4xx, 3xx                     rejected; redirects are never followed
//	410                                gone
//
// A time-out is unreachable while connecting and failed once a connection is there.
//
// One total deadline holds over everything, the answer's body included. At most 64 KiB of an answer's head and 64 KiB of its body are
// read. Addresses are judged by package egress when they are dialled; no proxy of the environment is used.
//
// Errors hold neither secrets, nor payloads, nor the URL. An excerpt is what the target chose to say, which may repeat what it was
// sent: show it to whom you would show the payload.
package webhook
