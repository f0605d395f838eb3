package pull

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// ErrStale is returned for a delivery that is not, or no longer, held under that fence.
var ErrStale = errors.New("the lease of this delivery is over")

var (
	errUnsettled = errors.New("the consumer did not settle the delivery within its lease")
	errNobody    = errors.New("nobody took the delivery")
	errClosed    = errors.New("the lane ended, and every lease with it")
	errNoTarget  = errors.New("its consumer asks for messages; nothing can be sent to it")
)

const (
	// gather is how long a request that has got its first delivery waits for the others of the same claim.
	gather = 10 * time.Millisecond
	// patience is how long a claimed delivery waits for the next request when the one that it was claimed for has gone.
	patience = 2 * time.Second
)

// Config is what a Queue needs. All fields are required.
type Config struct {
	// Lease is how long a consumer holds a delivery before it must settle or extend.
	Lease time.Duration
	// Cap is the longest that a consumer may hold one by extending, at most the handler's timeout.
	Cap time.Duration
	// Wake tells the dispatcher that somebody asks.
	Wake func()
}

// Queue hands out the deliveries of one lane. Its methods are safe for concurrent use.
type Queue struct {
	config Config
	closed chan struct{}

	mu      sync.Mutex
	asking  []*asker                    // who waits, the first to come first
	ready   []*held                     // claimed for somebody who has gone
	held    map[outbox.DeliveryID]*held // every attempt whose outcome is not on the disk
	running int                         // those of them that have no outcome yet
}

// asker is a request that waits.
type asker struct {
	who  string
	want int
	got  []*held
	woke chan struct{} // something was given to it
}

// held is one attempt.
type held struct {
	delivery outbox.Delivery
	taken    bool // by a consumer
	by       string
	ended    bool
	expires  time.Time // by the wall clock, as consumers see it
	limit    time.Time // extensions end here; monotonic
	timer    *time.Timer
	outcome  chan error // one, of the ended attempt
	stored   chan bool  // whether that was stale; one
}

// New returns the queue of a lane.
func New(config Config) *Queue {
	return &Queue{config: config, closed: make(chan struct{}), held: map[outbox.DeliveryID]*held{}}
}

// Width is how many attempts may run: those that do, and as many as are asked for.
func (q *Queue) Width() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	width := q.running
	for _, a := range q.asking {
		width += a.want
	}
	return width
}

// Deliver is the attempt: it lasts until the consumer has settled the delivery, or its lease is over.
func (q *Queue) Deliver(ctx context.Context, d outbox.Delivery) error {
	if d.ID == 0 { // past the lane
		return &outbox.Failure{Class: outbox.Unreachable, Err: errNoTarget}
	}
	h := &held{delivery: d, limit: time.Now().Add(q.config.Cap), outcome: make(chan error, 1), stored: make(chan bool, 1)}
	q.mu.Lock()
	select {
	case <-q.closed:
		q.mu.Unlock()
		return released(0, errClosed)
	default:
	}
	q.held[d.ID] = h
	q.running++
	q.offer(h)
	q.mu.Unlock()
	select {
	case err := <-h.outcome:
		return err
	case <-ctx.Done():
		q.finish(h, ctx.Err())
		return <-h.outcome
	}
}

// Settled lets whoever settled a delivery know that the outcome is on the disk.
func (q *Queue) Settled(d outbox.Delivery, stale bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.held[d.ID]; h != nil && h.delivery.Fence == d.Fence {
		q.end(h, errUnsettled) // the dispatcher's own lease was over first
		delete(q.held, d.ID)
		h.stored <- stale
	}
}

// Close ends every lease without charge, and answers everybody who waits.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closed:
		return
	default:
	}
	close(q.closed)
	for _, h := range q.held {
		q.end(h, released(0, errClosed))
	}
}

// released returns a delivery without charge, to be due after a time.
func released(after time.Duration, why error) error {
	return &outbox.Failure{Class: outbox.Snoozed, Err: why, RetryAfter: after}
}

// offer gives an attempt to the first who asks, or keeps it ready for the next. The caller holds q.mu.
func (q *Queue) offer(h *held) {
	for _, a := range q.asking {
		if a.want > 0 {
			q.give(h, a)
			return
		}
	}
	h.taken = false
	q.arm(h, patience, released(0, errNobody))
	q.ready = append(q.ready, h)
}

// give starts the consumer's lease. The caller holds q.mu.
func (q *Queue) give(h *held, a *asker) {
	a.want--
	a.got = append(a.got, h)
	h.taken, h.by, h.expires = true, a.who, time.Now().Add(q.config.Lease).UTC().Truncate(time.Microsecond)
	q.arm(h, q.config.Lease, &outbox.Failure{Class: outbox.Failed, Err: errUnsettled})
	select {
	case a.woke <- struct{}{}:
	default:
	}
}

// arm has an attempt end by itself after a time. The caller holds q.mu.
func (q *Queue) arm(h *held, after time.Duration, err error) {
	if h.timer != nil {
		h.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if h.timer == timer { // else it was armed again meanwhile
			q.end(h, err)
		}
	})
	h.timer = timer
}

func (q *Queue) finish(h *held, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(h, err)
}

// end gives an attempt its outcome, unless it has one. The caller holds q.mu.
func (q *Queue) end(h *held, err error) {
	if h.ended {
		return
	}
	h.ended = true
	h.timer.Stop()
	q.running--
	if i := slices.Index(q.ready, h); i >= 0 {
		q.ready = slices.Delete(q.ready, i, i+1)
	}
	h.outcome <- err
}
