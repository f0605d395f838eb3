package outbox

import "time"

// bucket bounds the attempts of a lane in a second: a token bucket, kept as the time at which it will be full again, so that it counts in
// whole nanoseconds and never drifts. Its times are monotonic; the dispatcher's mutex guards it. The zero bucket bounds nothing.
type bucket struct {
	every time.Duration // between two attempts; zero: no bound
	size  int           // attempts that may start at once after a rest
	full  time.Time
}

// newBucket holds a tenth of a second's attempts, so that a target's own count by the second is not surprised by a burst.
func newBucket(rate float64) bucket {
	if rate <= 0 {
		return bucket{}
	}
	return bucket{every: max(1, time.Duration(float64(time.Second)/rate)), size: max(1, int(rate/10))}
}

// tokens is how many attempts may start now, of those wanted.
func (b *bucket) tokens(now time.Time, wanted int) int {
	if b.every == 0 {
		return wanted
	}
	missing := max(0, b.full.Sub(now))
	return min(wanted, max(0, int((time.Duration(b.size)*b.every-missing)/b.every)))
}

// take uses tokens up. The bucket may go below empty, since a suspect is claimed beside the ordinary claim.
func (b *bucket) take(now time.Time, n int) {
	if b.every == 0 || n == 0 {
		return
	}
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(time.Duration(n) * b.every)
}

// wait is the time until the bucket is half full, so that a quick lane is not claimed for, and synced, one delivery at a time.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.every == 0 {
		return 0
	}
	return max(0, b.full.Sub(now)-time.Duration(b.size-max(1, b.size/2))*b.every)
}
