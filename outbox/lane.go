package outbox

import "time"

// lane is one handler's own queue. The dispatcher's mutex guards it. What it waits for by itself it waits for on the monotonic clock.
type lane struct {
	handler   Handler
	leaseFor  time.Duration
	busy      int       // attempts that run now; a handler that overruns its lease keeps its slot until it returns
	held      string    // why nothing is claimed; empty: the lane flows
	gone      bool      // its target is gone, and the hold that follows is not stored yet
	suspected bool      // deliveries that were in flight when the process ended may be waiting
	dirty     bool      // something may be due
	next      time.Time // when something will be due by the wall clock; zero: nothing known
	replan    bool      // its deliveries may be planned by a clock that was wrong
	leader    TenantID  // who was served first in the latest claim
	breaker   breaker
	bucket    bucket
	widening  time.Time // since when the lane flows again after a stop; zero: at its full width
}

func newLane(h Handler, c Config) *lane {
	return &lane{handler: h, leaseFor: h.Timeout + c.LeaseGrace, dirty: true, replan: true, breaker: breaker{policy: c.Breaker}, bucket: newBucket(h.Rate)}
}

// elsewhere: the work of its attempts is not done by this process, so it is no suspect when the process has ended, and may take its time.
func (l *lane) elsewhere() bool { return l.handler.Width != nil }

// dueAt notes that something becomes due at t.
func (l *lane) dueAt(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

// A lane that stopped starts again with a tenth of its width, doubled every ten seconds, so that a target that has just come back is not
// knocked over by all that waited for it.
const (
	firstWidth = 10 // the part of the concurrency
	widenEvery = 10 * time.Second
)

// restart begins at the first width.
func (l *lane) restart(now time.Time) { l.widening, l.dirty = now, true }

// width is how many attempts may run side by side now, and how long until it grows; zero: it is at its full width.
func (l *lane) width(now time.Time) (int, time.Duration) {
	full := l.handler.Concurrency
	if l.widening.IsZero() {
		return full, 0
	}
	since := max(0, now.Sub(l.widening))
	width := (full + firstWidth - 1) / firstWidth
	for range since / widenEvery {
		if width *= 2; width >= full {
			l.widening = time.Time{}
			return full, 0
		}
	}
	if width == full {
		return full, 0
	}
	return width, widenEvery - since%widenEvery
}

// holdOf says why a lane is held, whether somebody holds it or it waits for the clock; empty: it flows. The caller holds d.mu.
func (d *Dispatcher) holdOf(l *lane) string {
	if l.held == "" && d.untrusted && l.handler.NeedsClock {
		return ClockUntrusted
	}
	return l.held
}

// room is how many attempts may start now, with so many slots about to be free. When none may, wait is how long that will be so at the
// least; zero: until an attempt ends.
func (l *lane) room(now time.Time, returned int) (n int, wait time.Duration) {
	width, grows := l.width(now)
	if l.handler.Width != nil {
		width = min(width, l.handler.Width())
	}
	if n = width - l.busy + returned; n <= 0 {
		return 0, grows
	}
	if l.breaker.open() {
		wait, known := l.breaker.wait(now)
		if !known || wait > 0 {
			return 0, wait
		}
		n = 1
	}
	if n = l.bucket.tokens(now, n); n == 0 {
		return 0, l.bucket.wait(now)
	}
	return n, 0
}

// claimed takes into account that attempts start now.
func (l *lane) claimed(now time.Time, n int, probe bool) {
	l.bucket.take(now, n)
	l.breaker.probing = l.breaker.probing || probe && n > 0 && l.breaker.open()
}

// learn takes in how an attempt ended, and says whether the breaker opened or closed by it.
func (l *lane) learn(class Class, probe bool, now time.Time) (changed bool) {
	changed = l.breaker.learn(class, probe, now)
	if changed && !l.breaker.open() {
		l.restart(now)
	}
	return changed
}
