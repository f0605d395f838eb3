// Package pull hands deliveries to consumers that ask for them, for those that no request can reach.
//
// A [Queue] is the target of one lane. The dispatcher claims a delivery only while somebody asks (Width), so that no attempt is charged that
// nobody makes; the attempt then lasts until the consumer says how it ended, under its delivery's id and fence, or until the consumer's lease
// is over. Lease, fence, retries, order and dead letters are the dispatcher's.
//
// Its outcomes: the consumer's word (delivered, failed, rejected, throttled, released); failed, when the lease is over; snoozed and not charged,
// when nobody took it, the asking request broke off, the destination is changed, or the process stops. A restart ends every lease: the consumer
// is then told that it comes too late, and the delivery is made again.
package pull
