package store

import (
	"sync"
	"time"
)

// paceLeast is how long checkpoints are apart at least. A program that fills the WAL in less writes it back itself: what a checkpoint of ours costs
// the disk at that pace would be felt in more of its commits than its own are.
const paceLeast = 100 * time.Millisecond

// slack is how slowly a guess falls: a WAL that was begun anew meanwhile tells too little.
const slack = 0.8

// pace says when the pages that another program has committed should be written back. A connection with SQLite's defaults does that itself, within
// the COMMIT that finds 1,000 pages in the WAL, and its caller waits for it; what is written back before spares it that. SQLite does not tell how
// many pages there are but at a checkpoint, so that they are guessed from how often the program was seen to commit.
type pace struct {
	mu   sync.Mutex
	each float64   // pages for each sighting, guessed
	last time.Time // when the guess was last put to use
	now  tally
	then tally // up to the checkpoint that was asked for
}

// tally is what has come to the WAL since it was last thought empty.
type tally struct {
	seen int   // sightings
	from int64 // what our own writer had written at the beginning
}

// newPace guesses high, so that the first checkpoint comes soon and teaches it.
func newPace(want int) pace { return pace{each: float64(want) / 4} }

// saw notes that the program was seen to have committed, and reports whether a checkpoint is due: written is what our own writer has.
func (p *pace) saw(written int64, want int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.seen++
	if p.each*float64(p.now.seen)+float64(written-p.now.from) < float64(want) {
		return false
	}
	due := now.Sub(p.last) >= paceLeast
	if !due {
		p.each *= slack // or it has been guessed too high, which only a checkpoint would tell
	}
	p.then, p.now, p.last = p.now, tally{from: written}, now
	return due
}

// learn takes in what a checkpoint found.
func (p *pace) learn(found int, written int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.seen > 0 { // nobody asked for it, or it took long
		p.then, p.now = tally{p.then.seen + p.now.seen, p.then.from}, tally{from: written}
	}
	if p.then.seen > 0 {
		p.each = max(float64(int64(found)-(written-p.then.from))/float64(p.then.seen), slack*p.each, 1)
	}
	p.then = tally{from: written}
}

// Grown tells the store that another program has committed to its database. It does not block.
func (s *Store) Grown() {
	if c := s.checkpoint; c.pace.saw(s.Writer.Written(), c.pages, time.Now()) {
		c.due()
	}
}
