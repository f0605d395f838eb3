//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// profile says how long a proof goes on.
type profile int

const (
	brief  profile = iota // against the seeded bugs
	normal                // make chaos: within ten minutes
	long                  // make chaos-long
)

// fault is one way to break what runs.
type fault struct {
	name   string
	about  string
	needs  []need
	cycles [3]int // for each profile: so many in which load ran and the fault fired
	// seconds is about how long the cycles of the normal profile take on a machine of two cores: it decides the fault's share of the time.
	seconds float64
	bed     options
	// cycle runs load, breaks something and mends it. It says whether the fault fired.
	cycle func(ctx context.Context, b *bed, random *rand.Rand) (fired bool, err error)
	// after, unless nil, looks once more when the cycles are over, before everything is checked.
	after func(ctx context.Context, b *bed) error
	// unfinished: what is staged is too much to be delivered; only the cycle's own findings count.
	unfinished bool
}

// faults lists them all, in the order in which they are run.
func faults() []fault {
	var all []fault
	for _, list := range [][]fault{killFaults(), cutFaults(), diskFaults(), fileFaults(), processFaults(), targetFaults(), upkeepFaults(), clockFaults(), besideFaults()} {
		all = append(all, list...)
	}
	return all
}

// outcome is what came of a fault.
type outcome struct {
	Fault      string         `json:"fault"`
	About      string         `json:"about"`
	Planned    int            `json:"planned"`
	Cycles     int            `json:"cycles"` // load ran
	Fired      int            `json:"fired"`  // and the fault fired
	Violations []violation    `json:"violations"`
	Beyond     int            `json:"more_violations,omitempty"`
	NotRun     string         `json:"not_run,omitempty"`
	Broken     string         `json:"broken,omitempty"` // the harness itself could not go on
	Short      string         `json:"short,omitempty"`  // why it fell short of its number
	Seconds    float64        `json:"seconds"`
	Figures    map[string]int `json:"figures,omitempty"`
}

// enough violations tell the story; more of them only take time.
const enough = 25

// prove runs a fault's cycles on a bed of its own and checks what came of them.
func prove(ctx context.Context, m *machine, f fault, cycles int, tell func(string)) (o outcome) {
	o = outcome{Fault: f.name, About: f.about, Planned: cycles, Figures: map[string]int{}}
	began := time.Now()
	defer func() { o.Seconds = time.Since(began).Seconds() }()
	for _, n := range f.needs {
		if reason := m.able(ctx, n); reason != nil {
			o.NotRun = fmt.Sprintf("%s: %s", n, reason)
			return o
		}
	}
	b, unprepared := newBed(context.WithoutCancel(ctx), m, f.name, f.bed)
	if unprepared != nil {
		o.Broken = unprepared.Error()
		return o
	}
	defer b.close()
	if err := b.cycles(ctx, f, cycles, &o, tell); err != nil {
		// A program that no longer starts, or answers, after a fault has broken a promise.
		b.violate("recovery", "%s", err)
	} else if !f.unfinished && !m.stopped.Load() {
		tell(f.name + ": draining and checking")
		if err := b.finish(context.WithoutCancel(ctx)); err != nil {
			b.violate("recovery", "%s", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Violations = b.violations[:min(len(b.violations), enough)]
	o.Beyond = len(b.violations) - len(o.Violations)
	arrivals, misdeeds := b.receiver.counted()
	o.Figures["acknowledged"], o.Figures["refused"] = b.ledger.count(acknowledged), b.ledger.count(refused)
	o.Figures["resolved"], o.Figures["arrivals"], o.Figures["target faults"] = int(b.resolved.Load()), arrivals, misdeeds
	o.Figures["boots"] = b.program.boot
	if b.slowest > 0 {
		o.Figures["ms until ready behind 100,000 pending"] = int(b.slowest.Milliseconds())
	}
	o.Figures["messages to three handlers"] = b.widelySent()
	return o
}

// cycles runs them until the fault has fired often enough, time is up, or enough is broken. The first is always run. A fault that misses
// every other time is given up.
func (b *bed) cycles(ctx context.Context, f fault, cycles int, o *outcome, tell func(string)) error {
	random := b.randomFor(1_000_000)
	for i := 0; o.Fired < cycles && i < 2*cycles+2 && (i == 0 || ctx.Err() == nil) && len(b.found()) < enough; i++ {
		before := b.commands()
		// A cycle is not broken off: what it broke it mends.
		fired, err := f.cycle(context.WithoutCancel(ctx), b, random)
		if err != nil {
			return fmt.Errorf("cycle %d: %w", i+1, err)
		}
		if b.commands() > before {
			o.Cycles++
			if fired {
				o.Fired++
			}
		}
		if i%10 == 9 {
			if err := b.lookAtLetters(); err != nil {
				return err
			}
		}
		tell(fmt.Sprintf("%s: %d of %d; %d messages acknowledged, %d violations", f.name, o.Fired, cycles, b.ledger.count(acknowledged), len(b.found())))
	}
	if f.after != nil {
		return f.after(context.WithoutCancel(ctx), b)
	}
	return nil
}

func (b *bed) found() []violation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.violations
}

// widelySent counts the acknowledged messages that at least three handlers were to get.
func (b *bed) widelySent() (n int) {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, m := range b.ledger.messages {
		if m.command.verdict == acknowledged && len(b.handlersOf(m)) >= 3 {
			n++
		}
	}
	return n
}

// commands counts those that were sent.
func (b *bed) commands() int {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	return len(b.ledger.commands)
}

// between draws a duration.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}
