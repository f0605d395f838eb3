package realtime

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// times are when a connection does something by itself, by the hub's time. One timer serves them all: there are many connections, and
// most are idle.
type times struct {
	timer *time.Timer
	beat  time.Duration // the next heartbeat
	check time.Duration // the next revalidation
	end   time.Duration // of the life span
}

// schedule starts the clock of a connection. As all here but tick and revalidate, it is called under the mutex.
func (c *conn) schedule() {
	if c.closed {
		return
	}
	now, cfg := c.hub.now(), &c.hub.cfg
	// The first of each comes early by up to half, so that connections that came together do not tick together.
	c.times.beat = now + early(cfg.Heartbeat, 0.5)
	c.times.check = now + early(cfg.RevalidateEvery, 0.5)
	c.times.timer = time.AfterFunc(c.rest(), c.tick)
}

// rest is the time until the next thing to do.
func (c *conn) rest() time.Duration {
	next := min(c.times.end, c.times.beat)
	if c.hub.cfg.Revalidate != nil {
		next = min(next, c.times.check)
	}
	rest := next - c.hub.now()
	if !c.Expires.IsZero() {
		rest = min(rest, time.Until(c.Expires))
	}
	return max(rest, 0)
}

func (c *conn) tick() {
	fanned := c.hub.fanned.Load() // before the mutex: what was fanned out by now has been pushed
	c.mu.Lock()
	defer c.mu.Unlock()
	now, cfg := c.hub.now(), &c.hub.cfg
	switch {
	case c.closed:
		return
	case c.lapsed():
		c.dismiss(ReasonExpired)
		return
	case now >= c.times.end:
		c.bye(ReasonLifeSpan)
		return
	}
	if cfg.Revalidate != nil && now >= c.times.check {
		c.times.check = now + early(cfg.RevalidateEvery, 0.1)
		if c.checking == nil {
			ctx, cancel := context.WithTimeout(context.Background(), cfg.RevalidateEvery)
			c.checking = cancel
			go c.revalidate(ctx, c.Subscriber)
		}
	}
	if now >= c.times.beat {
		c.times.beat = now + early(cfg.Heartbeat, 0.1)
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
	if c.open && c.credits > 0 {
		c.offer(frame{id: c.cursorID(), cursor: true})
	}
}

// lapsed goes by the wall clock: the one that timers go by stands still while the machine sleeps.
func (c *conn) lapsed() bool {
	return !c.Expires.IsZero() && !time.Now().Round(0).Before(c.Expires)
}

// revalidate asks whether s may still listen. Its context ends with the connection.
func (c *conn) revalidate(ctx context.Context, s Subscriber) {
	expires, err := c.hub.cfg.Revalidate(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checking()
	c.checking = nil
	if c.closed {
		return
	}
	if err != nil {
		c.hub.cfg.Logger.Info("revalidate connection", "connection", c.ID, "user", c.User, "error", err)
		c.dismiss(refusal(err))
		return
	}
	c.Expires = expires
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
