package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
	"github.com/sethvargo/go-retry"
)

// RetryPolicy bounds the attempts of a delivery (P22, P23).
type RetryPolicy struct {
	// First is the delay after the first failure; each further one doubles. Defaults to 5 s.
	First time.Duration
	// Cap is the longest delay, before jitter. Defaults to 1 h.
	Cap time.Duration
	// JitterPercent spreads each delay by up to so many per cent either way. Defaults to 20.
	JitterPercent uint64
	// MaxAttempts is how many charged attempts are made. Defaults to 12.
	MaxAttempts int
	// Horizon is how long a failing message is retried: it bounds the sum of its waits, so that it stands still while nothing is tried, as in
	// a held lane. Defaults to 3 days.
	Horizon time.Duration
	// UnreachableHorizon is how long a message waits for a target that cannot be reached. Defaults to 90 days.
	UnreachableHorizon time.Duration
	// RetryAfterCap is the longest wait that a target may ask for. Defaults to 24 h.
	RetryAfterCap time.Duration

	unreachableCap time.Duration // the breaker's longest delay
}

func (p RetryPolicy) filled() (RetryPolicy, error) {
	fill := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	fill(&p.First, 5*time.Second)
	fill(&p.Cap, time.Hour)
	fill(&p.Horizon, 72*time.Hour)
	fill(&p.UnreachableHorizon, 90*24*time.Hour)
	fill(&p.RetryAfterCap, 24*time.Hour)
	if p.JitterPercent == 0 {
		p.JitterPercent = 20
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 12
	}
	switch {
	case p.First < 0 || p.Cap < p.First:
		return p, fmt.Errorf("retry policy: first delay %s must be positive and no longer than the cap %s", p.First, p.Cap)
	case p.JitterPercent > 100:
		return p, errors.New("retry policy: jitter must be at most 100 per cent")
	case p.MaxAttempts < 1 || p.Horizon < 0 || p.UnreachableHorizon < 0 || p.RetryAfterCap < 0:
		return p, errors.New("retry policy: bounds must be positive")
	}
	return p, nil
}

// delay draws the n-th delay, n counting from 1. go-retry keeps its state inside, so it is stepped anew; beyond 63 doublings nothing changes.
func (p RetryPolicy) delay(n int) time.Duration {
	b := retry.WithCappedDuration(p.Cap, retry.NewExponential(p.First))
	var d time.Duration
	for range max(1, min(n, 63)) {
		d, _ = b.Next()
	}
	return jittered(d, p.JitterPercent)
}

// jittered moves a delay by up to so many per cent either way. go-retry's own percentage knows whole per cents only, which would leave a
// thousand deliveries that failed together on forty instants.
func jittered(d time.Duration, percent uint64) time.Duration {
	spread := time.Duration(float64(d) * (float64(percent) / 100))
	d, _ = retry.WithJitter(spread, retry.NewConstant(d)).Next()
	return d
}

// longest is the longest wait that a retry can have been given.
func (p RetryPolicy) longest() time.Duration {
	return max(p.Cap+time.Duration(float64(p.Cap)*(float64(p.JitterPercent)/100)), p.RetryAfterCap)
}

// trial is what the retry policy must know of an attempt that failed.
type trial struct {
	attempt int // starts of the delivery so far, this one included
	charged int // those of them that the bound applies to, this one included
	// waited is the backoff that the delivery has behind it. The horizon bounds this sum and not the age, so that it runs only while the
	// delivery is being retried: neither the time in a held lane, behind an open breaker or in a long queue counts, nor a jump of the clock.
	waited time.Duration
	// unreachable is how long the target has been out of reach for this delivery.
	unreachable time.Duration
	// outage: the lane's breaker is open, so that it decides when to try again.
	outage bool
}

// verdict is what becomes of a delivery after a failed attempt: a dead letter of that class, or a next attempt after a wait.
type verdict struct {
	dead    bool
	class   Class
	wait    time.Duration
	charged int
	waited  time.Duration
}

// judge applies the policy to one failed attempt.
func (p RetryPolicy) judge(f *Failure, t trial) verdict {
	v := verdict{class: f.Class, charged: t.charged, waited: t.waited}
	if !f.Class.charged() {
		v.charged = max(0, t.charged-1) // the claim had charged it
	}
	switch f.Class {
	case Interrupted:
		v.wait = f.RetryAfter // nobody's fault, so no backoff
	case Snoozed:
		v.wait = min(max(0, f.RetryAfter), p.RetryAfterCap)
	case Unreachable:
		switch {
		case t.unreachable > p.UnreachableHorizon:
			v.dead, v.class = true, Expired
		case !t.outage:
			// No longer than the breaker would take to find that the target is back.
			v.wait = min(p.delay(t.attempt), p.unreachableCap)
		}
	case Throttled, Failed:
		switch {
		case f.Class == Failed && v.charged >= p.MaxAttempts && !mutant.BoundIgnored:
			v.dead = true
		case t.waited > p.Horizon:
			v.dead, v.class = true, Expired
		default:
			v.wait = p.delay(v.charged)
			if f.Class == Throttled {
				v.wait = p.delay(t.attempt)
			}
			if f.RetryAfter > 0 && !mutant.RetryAfterIgnored {
				v.wait = min(f.RetryAfter, p.RetryAfterCap)
			}
			if mutant.BackoffIgnored {
				v.wait = 0
			}
			v.waited = addWait(t.waited, v.wait)
		}
	default:
		v.dead = true
	}
	return v
}

// addWait adds what is stored to what is drawn, neither of which may push the sum over its end.
func addWait(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
