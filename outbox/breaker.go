package outbox

import (
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
)

// BreakerPolicy says when a lane stops attempting because its target cannot be reached, and how it finds that the target is back.
type BreakerPolicy struct {
	// OpensAfter is how many outcomes unreachable in a row open the breaker. Defaults to 5.
	OpensAfter int
	// ProbeFirst is the delay before the first probe; each further one doubles. Defaults to 1 s.
	ProbeFirst time.Duration
	// ProbeCap is the longest delay between probes, before jitter. Defaults to 5 min.
	ProbeCap time.Duration
}

func (p BreakerPolicy) filled() (BreakerPolicy, error) {
	if p.OpensAfter == 0 {
		p.OpensAfter = 5
	}
	if p.ProbeFirst == 0 {
		p.ProbeFirst = time.Second
	}
	if p.ProbeCap == 0 {
		p.ProbeCap = 5 * time.Minute
	}
	if p.OpensAfter < 1 || p.ProbeFirst < 0 || p.ProbeCap < p.ProbeFirst {
		return p, errors.New("breaker policy: OpensAfter must be positive, and ProbeFirst positive and no longer than ProbeCap")
	}
	return p, nil
}

// probeJitter spreads the probes of lanes whose line failed together, in per cent.
const probeJitter = 20

// BreakerState says whether a lane believes that its target can be reached.
type BreakerState string

const (
	// BreakerClosed: it can.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen: it cannot; nothing but a probe goes out, the rest waits untouched.
	BreakerOpen BreakerState = "open"
	// BreakerProbing: it could not, and a probe is out.
	BreakerProbing BreakerState = "probing"
)

// breaker tells an outage of a lane's target from failures of its messages. It lives in memory; at a start it is drawn from what is stored of
// the deliveries. The dispatcher's mutex guards it; its times are monotonic.
type breaker struct {
	policy   BreakerPolicy
	failures int       // unreachable in a row
	opened   time.Time // zero: closed
	probing  bool
	probeAt  time.Time
	delays   retry.Backoff
}

func (b *breaker) open() bool { return !b.opened.IsZero() }

func (b *breaker) state() BreakerState {
	switch {
	case !b.open():
		return BreakerClosed
	case b.probing:
		return BreakerProbing
	default:
		return BreakerOpen
	}
}

// learn takes in how an attempt ended and says whether that opened or closed the breaker. What was sent before it opened may still close
// it, but neither hastens nor delays the next probe.
func (b *breaker) learn(class Class, probe bool, now time.Time) (changed bool) {
	if probe {
		b.probing = false
	}
	switch {
	case class == Interrupted:
		// The process's doing; it says nothing about the target.
		return false
	case class != Unreachable:
		changed = b.open()
		*b = breaker{policy: b.policy}
		return changed
	case b.open():
		if probe {
			b.await(now)
		}
		return false
	}
	if b.failures++; b.failures < b.policy.OpensAfter {
		return false
	}
	b.trip(now)
	b.await(now)
	return true
}

// trip opens the breaker, as of a time; a probe is due at once.
func (b *breaker) trip(opened time.Time) {
	b.opened, b.probeAt = opened, opened
	b.delays = retry.WithCappedDuration(b.policy.ProbeCap, retry.NewExponential(b.policy.ProbeFirst))
}

func (b *breaker) await(now time.Time) {
	wait, _ := b.delays.Next()
	b.probeAt = now.Add(jittered(wait, probeJitter))
}

// probeNow lets the next probe go out at once, as when an operator says that the target is back.
func (b *breaker) probeNow(now time.Time) {
	if b.open() && b.probeAt.After(now) {
		b.probeAt = now
	}
}

// wait is how long no probe may start; known is false while one is out, since its outcome decides.
func (b *breaker) wait(now time.Time) (wait time.Duration, known bool) {
	if b.probing {
		return 0, false
	}
	return max(0, b.probeAt.Sub(now)), true
}

// show tells of the breaker in the wall clock's time, as people read it.
func (b *breaker) show(now, wall time.Time) Breaker {
	shown := Breaker{State: b.state()}
	if b.open() {
		shown.OpenedAt = wall.Add(b.opened.Sub(now))
		if !b.probing {
			shown.NextProbe = wall.Add(max(0, b.probeAt.Sub(now)))
		}
	}
	return shown
}
