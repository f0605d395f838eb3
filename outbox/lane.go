package outbox

import "time"

// lane is one handler's own queue. The dispatcher's mutex guards it.
type lane struct {
	handler  Handler
	leaseFor time.Duration
	busy     int       // attempts that run now; a handler that overruns its lease keeps its slot until it returns
	held     string    // why nothing is claimed; empty: the lane flows
	dirty    bool      // something may be due
	next     time.Time // when something will be due; zero: nothing known
	turn     int       // whose tenant's turn it is
}

func (l *lane) free() int { return l.handler.Concurrency - l.busy }

// dueAt notes that something becomes due at t.
func (l *lane) dueAt(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}
