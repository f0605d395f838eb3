package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Why connections end, as counted in Stats.Closed. Reasons given to Revoke are counted beside them.
const (
	ReasonClient    = "client"    // the client went away
	ReasonLagging   = "lagging"   // the client took nothing for the length of Config.WriteTimeout
	ReasonLifeSpan  = "life-span" // its time was up; clients reconnect
	ReasonExpired   = "expired"   // Principal.Expires passed, or Revalidate said ErrUnauthenticated
	ReasonForbidden = "forbidden" // Permit said no, or Revalidate ErrForbidden
	ReasonUnchecked = "unchecked" // Revalidate could not say
	ReasonDrain     = "drain"     // the hub is shutting down
	ReasonFault     = "fault"     // a fault of the hub itself
)

// conn is one connection: its wire, the credits for it, and the slots of what has yet to be told.
type conn struct {
	Subscriber
	hub    *Hub
	start  uint64      // the hub's sequence at admission: what is not newer is not pushed
	resume *resumption // until it has been told

	mu       sync.Mutex // guards what follows, and Expires
	wire     wire
	slots    slots
	reason   string
	times    times
	checking context.CancelFunc // ends the revalidation that is going on, if any
	progress time.Duration      // when the last frame was flushed, or the first handed over after a rest
	credits  int8
	open     bool // the wire takes frames
	closed   bool // nothing is offered any more

	place [aspects]int32 // the hub's roster has it, under the hub's mutex

	delivered, coalesced uint64
}

// begin runs when the headers are out: from here on the client is told what changes.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.open = true
	cfg := &c.hub.cfg
	hello, _ := json.Marshal(hello{
		Epoch: c.hub.history.epoch, Heartbeat: cfg.Heartbeat.Milliseconds(), LifeSpan: (c.times.end - c.hub.now()).Milliseconds(),
		Resumed: c.resume.resumed,
	})
	// The retry of a hello undoes a longer one that a browser was given when it was refused before.
	c.offer(frame{id: c.cursorID(), name: "hello", data: hello, retry: spread(time.Second, 0.5)})
	if c.resume.reset != "" {
		c.offer(frame{id: c.cursorID(), name: "reset", data: saying(c.resume.reset)})
	}
	c.resume = nil
	c.schedule()
	c.pump()
}

// The data of the events beside notifications.
type (
	hello struct {
		Epoch     string `json:"epoch"`
		Heartbeat int64  `json:"heartbeat_ms"`
		LifeSpan  int64  `json:"life_span_ms"`
		Resumed   bool   `json:"resumed"`
	}
	because struct {
		Reason string `json:"reason"`
	}
)

func saying(reason string) []byte {
	data, _ := json.Marshal(because{reason})
	return data
}

// push tells the connection of a notification, now or when it has credit again. It never blocks.
func (c *conn) push(p *published) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || p.seq <= c.start {
		return
	}
	if c.slots.push(p) {
		c.coalesced++
		c.hub.coalesced.Add(1)
	}
	c.pump()
}

// flushed gives a credit back.
func (c *conn) flushed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credits++
	c.progress = c.hub.now()
	c.pump()
}

// pump hands over as much as credits allow. The caller holds the mutex, as for all that follow.
func (c *conn) pump() {
	for c.open && !c.closed && c.credits > 0 {
		p, ok := c.slots.pop()
		if !ok {
			return
		}
		if permit := c.hub.cfg.Permit; permit != nil && !permit(c.Subscriber, p.key.topic) {
			c.dismiss(ReasonForbidden)
			return
		}
		if c.offer(frame{id: c.cursorID(), name: "notification", data: p.data}) {
			c.delivered++
			c.hub.delivered.Add(1)
		}
	}
}

// offer reports whether the wire took the frame.
func (c *conn) offer(f frame) bool {
	if c.closed {
		return false
	}
	if c.credits == credits {
		c.progress = c.hub.now()
	}
	switch err := c.wire.offer(f); {
	case errors.Is(err, errGone):
		c.open = false // whoever serves it is about to say why
		return false
	case err != nil:
		c.hub.cfg.Logger.Error("offer frame", "connection", c.ID, "event", f.name, "error", err)
		c.cut(ReasonFault)
		return false
	}
	c.credits--
	return true
}

func (c *conn) cursorID() string { return c.hub.history.id(c.slots.cursor()) }

// finish ends the connection politely: what is on its way is written, then a bye. What waits in slots is not sent: the
// client's cursor says so when it comes back.
func (c *conn) finish(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bye(reason)
}

func (c *conn) bye(reason string) {
	switch {
	case c.closed:
	case !c.open:
		c.cut(reason)
	default:
		if c.offer(frame{id: c.cursorID(), name: "bye", data: saying(reason), retry: spread(time.Second, 1)}) {
			c.wire.hangUp()
			c.close(reason)
		}
	}
}

// revoke ends the connection of a client that may not listen any more.
func (c *conn) revoke(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismiss(reason)
}

// dismiss lets nothing more out but the reason. What is on its way is dropped like what waits, and the client's cursor stays where
// it is: should it be let in again, it misses nothing.
func (c *conn) dismiss(reason string) {
	c.close(reason)
	c.wire.dismiss(frame{name: "bye", data: saying(c.reason)}) // which is another where it was ending already
}

// abort ends the connection at once.
func (c *conn) abort(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut(reason)
}

func (c *conn) cut(reason string) {
	c.close(reason)
	c.wire.cut()
}

func (c *conn) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, errLagging) {
		c.close(ReasonLagging)
	} else {
		c.close(ReasonClient)
	}
}

// ended runs when the stream has stopped by whatever cause; one that nobody gave is the client's.
func (c *conn) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(ReasonClient)
}

func (c *conn) close(reason string) {
	if c.closed {
		return
	}
	c.closed, c.reason = true, reason
	c.slots.clear()
	if c.times.timer != nil {
		c.times.timer.Stop()
	}
	if c.checking != nil {
		c.checking()
	}
}

// spread is d, give or take the given part of it.
func spread(d time.Duration, part float64) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*part*float64(d))
}
