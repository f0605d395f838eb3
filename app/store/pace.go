package store

import (
	"sync/atomic"
	"time"
)

// The bounds of a pace: how often a disk is made to sync at most, and how long the WAL of a program that seldom commits may wait.
const (
	paceLeast = 20 * time.Millisecond
	paceFirst = 100 * time.Millisecond
	paceMost  = 10 * time.Second
)

// pace says when the pages that another program has committed should be written back. A connection with SQLite's defaults does that itself, within
// the COMMIT that finds 1,000 pages in the WAL, and its caller waits for it; what is written back before spares it that. SQLite does not tell how
// many pages there are but at a checkpoint, so that the time between two is drawn from what the one before found.
type pace struct {
	origin time.Time
	every  time.Duration
	next   atomic.Int64 // nanoseconds since origin
}

func newPace() pace { return pace{origin: time.Now(), every: paceFirst} }

// reached reports whether it is time for a checkpoint.
func (p *pace) reached() bool { return int64(time.Since(p.origin)) >= p.next.Load() }

// adapt draws the time of the next checkpoint from what one has found. It is called by one goroutine only.
func (p *pace) adapt(found, want int) {
	p.every = min(max(p.every*time.Duration(want)/time.Duration(max(found, 1)), p.every/4, paceLeast), 2*p.every, paceMost)
	p.next.Store(int64(time.Since(p.origin) + p.every))
}

// Grown tells the store that another program has committed to its database. It does not block.
func (s *Store) Grown() {
	if s.checkpoint.pace.reached() {
		s.checkpoint.due()
	}
}
