package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/sethvargo/go-retry"
	"github.com/uptrace/bun"
)

// Config is what a Dispatcher needs. The zero value of every field but Writer and Read is useful.
type Config struct {
	// Writer is the store's one writer. Required.
	Writer *Writer
	// Read is the pool of query-only connections. Required.
	Read *bun.DB
	// Logger defaults to none.
	Logger *slog.Logger
	// Retry bounds the attempts of every delivery.
	Retry RetryPolicy
	// LeaseGrace is how much longer than its handler's timeout a lease lasts. Defaults to 15 s.
	LeaseGrace time.Duration
	// ClaimBatch is the most deliveries that a lane claims at once; never more than it can start. Defaults to 256.
	ClaimBatch int
	// Poll is how often the queue is looked at although nobody called. Defaults to 5 s.
	Poll time.Duration
	// Observe, unless nil, is told after each commit what changed, in order. It must not block.
	Observe func([]Change)
	// Now is the wall clock. Defaults to time.Now.
	Now func() time.Time
}

func (c Config) filled() (Config, error) {
	if c.Writer == nil || c.Read == nil {
		return c, errors.New("new dispatcher: Writer and Read are required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.LeaseGrace == 0 {
		c.LeaseGrace = 15 * time.Second
	}
	if c.ClaimBatch == 0 {
		c.ClaimBatch = 256
	}
	if c.Poll == 0 {
		c.Poll = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LeaseGrace < 0 || c.ClaimBatch < 1 || c.Poll < 0 {
		return c, errors.New("new dispatcher: LeaseGrace, ClaimBatch and Poll must be positive")
	}
	var err error
	c.Retry, err = c.Retry.filled()
	return c, err
}

// now is the wall clock as the store keeps it.
func (c Config) now() time.Time { return c.Now().UTC() }

// Dispatcher delivers what is due: one for each database, in one process, which holds the lock of the database's file. Its methods are
// safe for concurrent use.
type Dispatcher struct {
	config Config
	owner  string // this boot: the lease of any other is void

	version   atomic.Int64 // of what the observer is told
	observing sync.Mutex   // it is told by one at a time, in the order of the versions

	mu          sync.Mutex
	lanes       map[HandlerName]*lane
	tallies     map[HandlerName]*tally
	running     map[*attempt]struct{}
	outcomes    []outcome // ended, not yet settled
	overdue     []outcome // outlived their lease
	arrived     bool      // something may have been staged
	suspected   bool      // deliveries that were in flight when the process ended may be waiting
	suspectRuns bool
	stirred     map[HandlerName]bool // lanes that an operator's commit gave something to claim
	started     bool
	stopping    bool
	down        error // why the store cannot be used at the moment
	cursor      DeliveryID

	wake       chan struct{}
	stopped    chan struct{}
	cancelLoop context.CancelFunc
	attempts   sync.WaitGroup
	attemptCtx context.Context
	cancelRuns context.CancelCauseFunc
}

// NewDispatcher prepares a dispatcher. Register its handlers, then Start it.
func NewDispatcher(config Config) (*Dispatcher, error) {
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{
		config:  config,
		owner:   uuid.NewString(),
		lanes:   map[HandlerName]*lane{},
		tallies: map[HandlerName]*tally{},
		running: map[*attempt]struct{}{},
		stirred: map[HandlerName]bool{},
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	d.attemptCtx, d.cancelRuns = context.WithCancelCause(context.Background())
	return d, nil
}

// Start makes every lease of an earlier boot void, counts the backlog, and begins to deliver.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	if d.started {
		d.mu.Unlock()
		return errors.New("start dispatcher: it was started already")
	}
	d.started = true
	handlers := make([]Handler, 0, len(d.lanes))
	for _, l := range d.lanes {
		handlers = append(handlers, l.handler)
	}
	d.mu.Unlock()
	if err := d.recover(ctx, handlers); err != nil {
		return fmt.Errorf("start dispatcher: %w", err)
	}
	d.config.Writer.OnCommit(d.Wake)
	loop, cancel := context.WithCancel(context.Background())
	d.cancelLoop = cancel
	go d.loop(loop)
	return nil
}

// Wake tells the dispatcher that something was staged. The Writer's own commits do this by themselves; call it after a commit of your own
// transaction. It never blocks.
func (d *Dispatcher) Wake() {
	d.mu.Lock()
	d.arrived = true
	d.mu.Unlock()
	d.signal()
}

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Dispatcher) loop(ctx context.Context) {
	defer close(d.stopped)
	for {
		timer := time.NewTimer(d.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			d.takeTurns(ctx)
			return
		case <-d.config.Writer.Done():
			timer.Stop()
			return
		case <-d.wake:
		case <-timer.C:
			d.mu.Lock()
			d.arrived = true
			d.mu.Unlock()
		}
		timer.Stop()
		d.takeTurns(ctx)
	}
}

// takeTurns works until nothing is left to do. While the store cannot be used it claims nothing, charges no message, and asks again after
// a growing, bounded wait (P24, P25, P26).
func (d *Dispatcher) takeTurns(ctx context.Context) {
	backoff := storeBackoff()
	var logged time.Time
	for t := d.plan(); t != nil; t = d.plan() {
		err := d.config.Writer.First(context.WithoutCancel(ctx), t.run(d))
		d.setDown(err)
		if err == nil {
			backoff = storeBackoff()
			if d.config.Observe != nil {
				// Before the attempts start, so that an observer sees the claim before its outcome.
				d.observe(t.changes())
			}
			d.apply(t)
			continue
		}
		d.putBack(t)
		if d.config.Writer.Err() != nil {
			return
		}
		if now := time.Now(); now.Sub(logged) > 30*time.Second {
			logged = now
			d.config.Logger.Warn("the store cannot be used; delivery waits", "error", err)
		}
		wait, _ := backoff.Next()
		select {
		case <-time.After(wait):
		case <-d.config.Writer.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func storeBackoff() retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(5*time.Second, retry.NewExponential(50*time.Millisecond)))
}

func (d *Dispatcher) setDown(err error) {
	d.mu.Lock()
	d.down = err
	d.mu.Unlock()
}

// Down says why the store cannot be used at the moment; nil: it can.
func (d *Dispatcher) Down() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

func (d *Dispatcher) untilDue() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := d.config.Poll
	now := d.config.now()
	for _, l := range d.lanes {
		if l.held == "" && l.free() > 0 && !l.next.IsZero() {
			wait = min(wait, max(0, l.next.Sub(now)))
		}
	}
	return wait
}

// settled takes a committed outcome into the counts.
func (d *Dispatcher) settled(o outcome) {
	l, t := o.attempt.lane, d.tally(o.attempt.delivery.Handler)
	if o.stale {
		t.stale++
		return
	}
	t.processing--
	t.meter.record(o.ended, o.ended.Sub(o.attempt.started), o.failure == nil)
	switch {
	case o.failure == nil:
		t.dispatched++
		if o.attempt.delivery.Message.OrderingKey != "" {
			l.dirty = true
		}
	case o.verdict.dead:
		t.failed++
		if o.attempt.delivery.Message.OrderingKey != "" {
			l.dirty = true
		}
	default:
		t.pending++
		l.dueAt(o.ended.Add(o.verdict.wait))
	}
}

// Stop ends delivery: nothing more is claimed, what runs may finish until ctx is done, and what then still runs gives its lease back
// without charge. A handler that ignores its context is not waited for.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	if !d.started || d.stopping {
		d.mu.Unlock()
		return nil
	}
	d.stopping = true
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() { d.attempts.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-d.config.Writer.Done():
	}
	d.cancelRuns(errStopping)
	select {
	case <-ended:
	case <-d.config.Writer.Done():
	case <-time.After(time.Second):
		d.release()
	}
	d.cancelLoop()
	<-d.stopped
	if err := d.config.Writer.Err(); err != nil {
		return fmt.Errorf("stop dispatcher: %w", err)
	}
	return nil
}

// release settles attempts whose handlers did not return, so that the next start need not take them for victims of a crash.
func (d *Dispatcher) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.running {
		if !a.expired && !slices.ContainsFunc(d.outcomes, func(o outcome) bool { return o.attempt == a }) {
			a.expired = true
			d.overdue = append(d.overdue, outcome{attempt: a, failure: &Failure{Class: Interrupted, Err: errStopping}, ended: d.config.now()})
		}
	}
}

// Handlers returns the names of the registered handlers, sorted.
func (d *Dispatcher) Handlers() []HandlerName {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.lanes))
}
