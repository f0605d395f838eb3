package outbox

import (
	"errors"
	"fmt"
	"time"

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
	// Horizon is how long after staging a failing message is retried. Defaults to 3 days.
	Horizon time.Duration
	// UnreachableHorizon is how long a message waits for a target that cannot be reached. Defaults to 90 days.
	UnreachableHorizon time.Duration
	// RetryAfterCap is the longest wait that a target may ask for. Defaults to 24 h.
	RetryAfterCap time.Duration
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
	b := retry.WithJitterPercent(p.JitterPercent, retry.WithCappedDuration(p.Cap, retry.NewExponential(p.First)))
	var d time.Duration
	for range max(1, min(n, 63)) {
		d, _ = b.Next()
	}
	return d
}

// verdict is what becomes of a delivery after a failed attempt: a dead letter of that class, or a next attempt after a wait.
type verdict struct {
	dead    bool
	class   Class
	wait    time.Duration
	charged int
}

// judge applies the policy to one failed attempt. age is the time since staging, unreachable the time since its target was last reachable.
func (p RetryPolicy) judge(f *Failure, attempt, charged int, age, unreachable time.Duration) verdict {
	v := verdict{class: f.Class, charged: charged}
	if !f.Class.charged() {
		v.charged = max(0, charged-1) // the claim had charged it
	}
	switch {
	case f.Class.permanent():
		v.dead = true
	case f.Class == Interrupted:
		// Nobody's fault and nothing to wait for.
	case f.Class == Unreachable && unreachable > p.UnreachableHorizon:
		v.dead, v.class = true, Expired
	case f.Class == Unreachable:
		v.wait = p.delay(attempt)
	case f.RetryAfter > 0:
		v.wait = min(f.RetryAfter, p.RetryAfterCap)
	case f.Class == Throttled:
		v.wait = p.delay(attempt)
	case v.charged >= p.MaxAttempts:
		v.dead = true
	case age > p.Horizon:
		v.dead, v.class = true, Expired
	default:
		v.wait = p.delay(v.charged)
	}
	return v
}
