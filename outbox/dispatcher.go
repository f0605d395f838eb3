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
	// Breaker says when a lane whose target cannot be reached stops attempting.
	Breaker BreakerPolicy
	// LeaseGrace is how much longer than its handler's timeout a lease lasts. Defaults to 15 s.
	LeaseGrace time.Duration
	// ClaimBatch is the most deliveries that a lane claims at once; never more than it can start. Defaults to 256.
	ClaimBatch int
	// Poll is how often the queue is looked at although nobody called. Defaults to 5 s.
	Poll time.Duration
	// Foreign has the dispatcher notice what other programs stage in the database. Defaults to leaving that to Poll and Wake.
	Foreign ForeignPoll
	// Observe, unless nil, is told after each commit what changed, in order. It must not block.
	Observe func([]Change)
	// ObserveLane, unless nil, is told whose lane was held, resumed or disabled, or has opened or closed its breaker. It must not block.
	ObserveLane func(HandlerName)
	// Measure, unless nil, is told of each settled attempt. It must not block, nor call the dispatcher.
	Measure func(Outcome)
	// Check, unless nil, judges a message that was staged by SQL, past whatever this program checks before it stages, when it is first claimed.
	// Its error makes the delivery a dead letter of the class rejected. It runs in the writer, so it must be quick, and must not call back.
	Check func(Message) error
	// Now is the wall clock, the same as the Writer's. Defaults to time.Now.
	Now func() time.Time
	// BuildDate is when the program was built. While the clock is before it, the lanes that need a clock are held. Zero: any time is believed.
	BuildDate time.Time
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
	if c.Foreign.Busy < 0 || c.Foreign.Idle < c.Foreign.Busy {
		return c, errors.New("new dispatcher: Foreign.Busy must not be negative, and not above Foreign.Idle")
	}
	if c.LeaseGrace < 0 || c.ClaimBatch < 1 || c.Poll < 0 {
		return c, errors.New("new dispatcher: LeaseGrace, ClaimBatch and Poll must be positive")
	}
	var err error
	if c.Breaker, err = c.Breaker.filled(); err != nil {
		return c, err
	}
	c.Retry.unreachableCap = c.Breaker.ProbeCap
	c.Retry, err = c.Retry.filled()
	return c, err
}

// now is the wall clock as the store keeps it: without a monotonic part.
func (c Config) now() time.Time { return c.Now().UTC().Truncate(time.Microsecond) }

// Dispatcher delivers what is due: one for each database, in one process, which holds the lock of the database's file. Its methods are
// safe for concurrent use.
type Dispatcher struct {
	config Config
	owner  string // this boot: the lease of any other is void

	version   atomic.Int64 // of what the observer is told
	observing sync.Mutex   // it is told by one at a time, in the order of the versions

	clock clock
	leaps atomic.Int64 // long jumps of the clock ahead, for retention

	mu          sync.Mutex
	lanes       map[HandlerName]*lane
	tallies     map[HandlerName]*tally
	running     map[*attempt]struct{}
	outcomes    []outcome // ended, not yet settled
	overdue     []outcome // outlived their lease
	arrived     bool      // something may have been staged
	counted     time.Time // when arrivals were last counted; monotonic
	suspectRuns bool
	stirred     map[HandlerName]bool // lanes that an operator's commit gave something to claim
	started     bool
	stopping    bool
	down        error     // why the store cannot be used at the moment
	logged      time.Time // when that was last logged
	downLogged  bool      // this time it was
	cursor      DeliveryID
	bystander   bystander
	untrusted   bool          // the clock is
	told        []HandlerName // whose lanes changed, for ObserveLane

	turning    sync.Mutex // held for each turn, before mu
	seen       place      // behind the latest turn; of whoever runs the writer's groups
	wake       chan struct{}
	committed  chan struct{} // another program has
	stopped    chan struct{}
	cancelLoop context.CancelFunc
	watching   sync.WaitGroup
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
		config:    config,
		owner:     uuid.NewString(),
		lanes:     map[HandlerName]*lane{},
		tallies:   map[HandlerName]*tally{},
		running:   map[*attempt]struct{}{},
		stirred:   map[HandlerName]bool{},
		wake:      make(chan struct{}, 1),
		committed: make(chan struct{}, 1),
		stopped:   make(chan struct{}),
	}
	d.clock.origin = time.Now()
	d.clock.account(config.now())
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
		d.mu.Lock()
		d.started = false // there is nothing to stop
		d.mu.Unlock()
		return fmt.Errorf("start dispatcher: %w", err)
	}
	for _, h := range handlers {
		if h.SkipDeadLetters {
			if err := d.passDead(ctx, h.Name); err != nil {
				d.mu.Lock()
				d.started = false
				d.mu.Unlock()
				return fmt.Errorf("start dispatcher: %w", err)
			}
		}
	}
	d.config.Writer.OnCommit(d.behindCommit)
	loop, cancel := context.WithCancel(context.Background())
	d.cancelLoop = cancel
	go d.loop(loop)
	if d.config.Foreign.Busy > 0 {
		d.watching.Go(func() { d.watchForeign(loop) })
	}
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

// behindCommit is told of each commit of the writer. What a turn ended, it has seen all of.
func (d *Dispatcher) behindCommit() {
	if d.config.Writer.place() != d.seen {
		d.Wake()
	}
}

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Dispatcher) loop(ctx context.Context) {
	defer close(d.stopped)
	for last := false; !last; {
		timer := time.NewTimer(d.untilDue())
		r := d.hitch()
		gone := false
		select {
		case <-ctx.Done():
			last = true
		case <-d.config.Writer.Done():
			gone = true
		case <-d.wake:
		case <-timer.C:
			d.mu.Lock()
			d.arrived = true
			d.mu.Unlock()
		}
		timer.Stop()
		r.end()
		if gone {
			return
		}
		d.takeTurns(ctx)
	}
}

// untilDue is how long there is nothing to do, unless something happens.
func (d *Dispatcher) untilDue() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := d.config.Poll
	if d.stopping {
		return wait
	}
	now, mono := d.config.now(), time.Now()
	for _, l := range d.lanes {
		if d.holdOf(l) != "" || l.gone || (!l.dirty && l.next.IsZero()) {
			continue
		}
		if room, closed := l.room(mono, 0); room > 0 && l.dirty {
			return 0
		} else if room > 0 {
			wait = min(wait, max(0, l.next.Sub(now)))
		} else if closed > 0 {
			wait = min(wait, closed)
		}
	}
	if d.arrived {
		wait = min(wait, max(0, countEvery-mono.Sub(d.counted)))
	}
	return wait
}

// settled takes a committed outcome into the counts.
func (d *Dispatcher) settled(o outcome) {
	name := o.attempt.delivery.Handler
	l, t := d.lanes[name], d.tally(name)
	if l == nil {
		l = o.attempt.lane // removed meanwhile
	}
	d.measure(o)
	if told := o.attempt.lane.handler.Settled; told != nil {
		told(o.attempt.delivery, o.stale)
	}
	if o.stale {
		t.stale++
		o.attempt.lane.gone = false
		return
	}
	t.processing--
	t.meter.record(o.ended, o.took, o.failure == nil)
	switch {
	case o.failure == nil:
		t.dispatched++
	case o.verdict.dead:
		t.failed++
	default:
		t.pending++
		l.dueAt(o.due)
		return
	}
	if o.attempt.delivery.Message.OrderingKey != "" {
		l.dirty = true // the next of its key
	}
	if o.failure != nil && o.failure.Class == Gone && !o.orphan {
		l.held, l.gone = TargetGone, false
		d.told = append(d.told, name)
		d.config.Logger.Warn("a target is gone; its deliveries are held", "handler", name)
	}
}

// Late counts an outcome that reached a handler after its attempt had ended, so that it changed nothing: for a handler that learns of
// outcomes from elsewhere.
func (d *Dispatcher) Late(handler HandlerName) {
	d.mu.Lock()
	d.tally(handler).stale++
	d.mu.Unlock()
	if d.config.Measure != nil {
		d.config.Measure(Outcome{Handler: handler, Result: ResultStale})
	}
}

// Handlers returns the names of the registered handlers, sorted.
func (d *Dispatcher) Handlers() []HandlerName {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.lanes))
}
