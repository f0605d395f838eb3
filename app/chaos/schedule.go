//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// rounds is how often a fault that fell short of its number may have another turn, with the time that others left over.
const rounds = 3

// unsettled is the part of a fault's share that its cycles leave to draining and checking.
const unsettled = 5

// turn is a fault's place in a proof.
type turn struct {
	fault   fault
	planned int
	outcome outcome
}

// done says that another turn would add nothing: the number is reached, or the fault cannot be run, or enough is broken.
func (t *turn) done() bool {
	return t.outcome.Fired >= t.planned || t.outcome.NotRun != "" || t.outcome.Broken != "" || len(t.outcome.Violations) > 0
}

// share is the part of the time left that the first of some turns gets: each in the measure of what it is known to need, so that none can take
// the time of those behind it, and what one leaves over is everybody's.
func share(left time.Duration, waiting []*turn) time.Duration {
	var all, need float64
	for i, t := range waiting {
		// What is left of its number needs that part of its time.
		n := t.fault.seconds * float64(t.planned-t.outcome.Fired) / float64(max(1, t.planned))
		if all += n; i == 0 {
			need = n
		}
	}
	if all <= 0 {
		return left / time.Duration(max(1, len(waiting)))
	}
	return time.Duration(float64(left) * need / all)
}

// takeTurns runs the faults one after another. With a limit it ends by then, and each fault has its share of the time.
func takeTurns(ctx context.Context, m *machine, turns []*turn, limit time.Duration, tell func(string)) {
	deadline := time.Now().Add(limit)
	for round := range rounds {
		for i, t := range turns {
			if t.done() || ctx.Err() != nil || round > 0 && limit <= 0 {
				continue
			}
			var waiting []*turn
			for _, u := range turns[i:] {
				if !u.done() {
					waiting = append(waiting, u)
				}
			}
			bounded, cancel := ctx, context.CancelFunc(func() {})
			if limit > 0 {
				left := time.Until(deadline)
				if left <= 0 || round > 0 && left < leastTurn {
					continue
				}
				part := share(left, waiting)
				bounded, cancel = context.WithTimeout(ctx, part-part/unsettled)
			}
			f := t.fault
			if round > 0 {
				f.name = fmt.Sprintf("%s-%d", f.name, round+1)
			}
			t.outcome.join(prove(bounded, m, f, t.planned-t.outcome.Fired, tell))
			cancel()
		}
	}
	for _, t := range turns {
		t.outcome.Fault, t.outcome.About, t.outcome.Planned = t.fault.name, t.fault.about, t.planned
		o := &t.outcome
		switch {
		case o.NotRun != "" || o.Broken != "" || len(o.Violations) > 0:
		case ctx.Err() != nil && o.Fired < t.planned:
			o.Short = "ended by hand"
		case o.Fired < t.planned:
			o.Short = "the time was up"
		}
	}
}

// leastTurn is the least time that is worth another bed.
const leastTurn = 5 * time.Second

// join adds what came of another turn.
func (o *outcome) join(more outcome) {
	o.Cycles, o.Fired, o.Seconds = o.Cycles+more.Cycles, o.Fired+more.Fired, o.Seconds+more.Seconds
	o.Violations, o.Beyond = append(o.Violations, more.Violations...), o.Beyond+more.Beyond
	o.NotRun, o.Broken = more.NotRun, more.Broken
	if o.Figures == nil {
		o.Figures = map[string]int{}
	}
	for name, n := range more.Figures {
		o.Figures[name] += n
	}
}
