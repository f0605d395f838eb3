package realtime

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// times are when a connection does something by itself. One timer serves them all: there are many connections, and most are idle.
type times struct {
	timer    *time.Timer
	beat     time.Time // the next heartbeat
	check    time.Time // the next revalidation
	end      time.Time // of the life span
	checking bool      // a revalidation is going on
}

// schedule starts the clock of a connection. As all here but tick and revalidate, it is called under the mutex.
func (c *conn) schedule() {
	if c.closed {
		return
	}
	now, cfg := time.Now(), &c.hub.cfg
	// The first of each comes early by up to half, so that connections that came together do not tick together.
	c.times.beat = now.Add(early(cfg.Heartbeat, 0.5))
	c.times.check = now.Add(early(cfg.RevalidateEvery, 0.5))
	c.times.end = now.Add(c.life)
	c.times.timer = time.AfterFunc(c.rest(), c.tick)
}

// rest is the time until the next thing to do.
func (c *conn) rest() time.Duration {
	next := c.times.end
	if c.times.beat.Before(next) {
		next = c.times.beat
	}
	if c.hub.cfg.Revalidate != nil && c.times.check.Before(next) {
		next = c.times.check
	}
	if !c.expires.IsZero() && c.expires.Before(next) {
		next = c.expires
	}
	return max(time.Until(next), 0)
}

func (c *conn) tick() {
	fanned := c.hub.fanned.Load() // before the mutex: what was fanned out by now has been pushed
	c.mu.Lock()
	defer c.mu.Unlock()
	now, cfg := time.Now(), &c.hub.cfg
	switch {
	case c.closed:
		return
	case c.lapsed(now):
		c.dismiss(ReasonExpired)
		return
	case !now.Before(c.times.end):
		c.bye(ReasonLifeSpan)
		return
	}
	if cfg.Revalidate != nil && !now.Before(c.times.check) {
		c.times.check = now.Add(early(cfg.RevalidateEvery, 0.1))
		if !c.times.checking {
			c.times.checking = true
			go c.revalidate()
		}
	}
	if !now.Before(c.times.beat) {
		c.times.beat = now.Add(early(cfg.Heartbeat, 0.1))
		c.heartbeat(fanned)
	}
	if !c.closed {
		c.times.timer.Reset(c.rest())
	}
}

// heartbeat also moves the client's cursor. Otherwise a client whose topics are quiet would find its place fallen out of the
// history by the busy topics of others.
func (c *conn) heartbeat(fanned uint64) {
	c.slots.reached = max(c.slots.reached, fanned)
	if c.credits > 0 {
		c.offer(frame{id: c.cursorID(), cursor: true})
	}
}

// lapsed goes by the wall clock: the one that timers go by stands still while the machine sleeps.
func (c *conn) lapsed(now time.Time) bool {
	return !c.expires.IsZero() && !now.Round(0).Before(c.expires)
}

func (c *conn) revalidate() {
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.cfg.RevalidateEvery)
	defer cancel()
	expires, err := c.hub.cfg.Revalidate(ctx, c.Subscriber)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times.checking = false
	if c.closed {
		return
	}
	if err != nil {
		c.hub.cfg.Logger.Info("revalidate connection", "connection", c.ID, "user", c.User, "error", err)
		c.dismiss(refusal(err))
		return
	}
	c.expires = expires
	c.times.timer.Reset(c.rest())
}

func refusal(err error) (reason string) {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return ReasonExpired
	case errors.Is(err, ErrForbidden):
		return ReasonForbidden
	}
	return ReasonUnchecked
}

// early is d, less up to the given part of it.
func early(d time.Duration, part float64) time.Duration {
	return d - time.Duration(rand.Float64()*part*float64(d))
}
