package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
)

// WriterConfig says how a Writer works. The zero value is useful.
type WriterConfig struct {
	// Queue bounds the commands that wait. Defaults to 4,096.
	Queue int
	// GroupMax bounds the commands of one group, not counting those that go first. Defaults to 512.
	GroupMax int
	// GroupTime bounds how long a group goes on taking commands. Defaults to 25 ms.
	GroupTime time.Duration
	// Deadline is how long a command sent by Do may wait to be started when its context has no deadline. Defaults to 5 s.
	Deadline time.Duration
	// TwoFiles says that another database file is attached to the connection. SQLite then commits one file after the other, so that a COMMIT
	// which finds the disk full is in doubt too.
	TwoFiles bool
	// Mark, unless nil, is told the number of each COMMIT that changed something, once it is on the disk and before anybody is answered. Numbers
	// rise by one and are kept in posthorn_meta, by the COMMIT itself. Every writer waits while it runs, so it must be short. Only for a file
	// that nobody else writes to.
	Mark func(commit int64)
	// Now tells the time that commands see. Defaults to time.Now.
	Now func() time.Time
	// Logger is told of panics and of the writer's end. Defaults to silence.
	Logger *slog.Logger
}

func (cfg *WriterConfig) fill() error {
	if cfg.Queue < 0 || cfg.GroupMax < 0 || cfg.GroupTime < 0 || cfg.Deadline < 0 {
		return errors.New("a bound of the writer is negative")
	}
	if cfg.Queue == 0 {
		cfg.Queue = 4096
	}
	if cfg.GroupMax == 0 {
		cfg.GroupMax = 512
	}
	if cfg.GroupTime == 0 {
		cfg.GroupTime = 25 * time.Millisecond
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Writer is the one way to write to a database. Commands wait in a bounded queue; the writer runs each in a savepoint of its own
// inside one transaction, commits once, and only then answers all of them, so that many callers share what a commit costs.
//
// A command is acknowledged, by a nil error, only when it is on the disk. Any other answer but ErrInDoubt means that it has
// changed nothing.
type Writer struct {
	cfg     WriterConfig
	conn    writerConn
	group   group
	groups  int64 // that were run
	again   line  // commands of an abandoned group, each to be run in a transaction of its own
	wake    chan struct{}
	done    chan struct{}
	written atomic.Int64
	// pool is the writer's own, since the timers and channels in it belong to the test bubble that made them.
	pool sync.Pool

	mu     sync.Mutex
	first  line
	queue  line
	rider  *waiting // waits for a group to ride along with
	idle   bool     // nobody runs groups: the loop sleeps
	closed bool     // no command is taken any more
	err    error    // why the writer has stopped for good
	hooks  []func()
}

// NewWriter starts a writer on a handle of one connection, which it keeps to itself until Close. The connection must be one of
// modernc.org/sqlite; a driver wrapped around it must have an Unwrap method.
func NewWriter(db *bun.DB, cfg WriterConfig) (*Writer, error) {
	if err := cfg.fill(); err != nil {
		return nil, fmt.Errorf("start writer: %w", err)
	}
	w := &Writer{
		cfg:  cfg,
		conn: writerConn{db: db},
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
		pool: sync.Pool{New: newWaiting},
	}
	if err := w.conn.open(context.Background()); err != nil {
		return nil, fmt.Errorf("start writer: %w", storeError(err))
	}
	go w.loop()
	return w, nil
}

// Do runs a command and answers once its outcome is certain. When ctx ends before the command is started, the command is never
// run; once it is started, Do waits for its end. A command whose context has no deadline gets WriterConfig.Deadline.
//
// A command that ends its goroutine, as t.FailNow does, is undone, and Do ends the goroutine of its sender likewise, whichever of the two
// ran it: what never returned is not taken for an answer.
func (w *Writer) Do(ctx context.Context, fn Command) error {
	return w.send(ctx, fn, asQueued)
}

// First is Do ahead of the queue, without its bound and without a deadline of its own: for the commands that make room, such as
// claiming and settling.
func (w *Writer) First(ctx context.Context, fn Command) error {
	return w.send(ctx, fn, asFirst)
}

// Between runs fn between two groups, while the writer has no transaction open and every command waits: for a short step of upkeep
// that needs it so. It goes ahead of the queue.
func (w *Writer) Between(ctx context.Context, fn func(ctx context.Context) error) error {
	return w.send(ctx, func(ctx context.Context, _ *Tx) error { return fn(ctx) }, asBetween)
}

// OnCommit has fn called after every COMMIT that changed something. Every writer waits while it runs, so it must not block: a send
// to a channel with a default case, no more.
func (w *Writer) OnCommit(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks = append(w.hooks[:len(w.hooks):len(w.hooks)], fn)
}

// Written counts the pages that the writer has written since it was started: what a checkpoint will have to move.
func (w *Writer) Written() int64 { return w.written.Load() }

// Waiting counts the commands that wait to be started.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first.len() + w.queue.len()
}

// Close takes no more commands, runs those that wait, and stops the writer. When ctx ends first, the commands that still wait are
// answered ErrClosed.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.rouse()
	w.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.stop(ErrClosed)
		return fmt.Errorf("close writer: %w", context.Cause(ctx))
	}
}

// Fail stops the writer for good, as for a database file that is no longer the one that was opened: commands that wait and all
// that are still sent are answered cause, and a group that is being run is not committed.
func (w *Writer) Fail(cause error) { w.stop(cause) }

// Done is closed when the writer has stopped.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Err tells why the writer has stopped for good; nil while it works and after an orderly Close.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	return w.err
}

// rank says when a command has its turn.
type rank int

const (
	asQueued rank = iota
	asFirst
	asBetween
)

func (w *Writer) send(ctx context.Context, fn Command, rank rank) error {
	if ctx.Value(commandMark{}) != nil {
		return ErrNestedCommand
	}
	if ctx.Err() != nil {
		return refusal(ctx)
	}
	c := w.pool.Get().(*waiting)
	c.fn, c.ctx, c.between = fn, ctx, rank == asBetween
	if rank != asBetween && w.claim() {
		w.serve(c)
		<-c.answered
		return w.finish(c)
	}
	var late <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		c.deadline = deadline
	} else if rank == asQueued {
		c.deadline = time.Now().Add(w.cfg.Deadline)
		c.timer.Reset(w.cfg.Deadline)
		late = c.timer.C
	}
	if err := w.enqueue(c, rank != asQueued); err != nil {
		w.recycle(c)
		return err
	}
	select {
	case <-c.answered:
	case <-ctx.Done():
		if c.state.CompareAndSwap(waitingQueued, waitingLeft) {
			return refusal(ctx)
		}
		<-c.answered
	case <-late:
		if c.state.CompareAndSwap(waitingQueued, waitingLeft) {
			return ErrDeadline
		}
		<-c.answered
	}
	return w.finish(c)
}

// finish does what is left to do on the sender's goroutine.
func (w *Writer) finish(c *waiting) error {
	err, after := c.err, c.after
	w.recycle(c)
	if err == errCommandExited { //nolint:errorlint // the mark itself, never an error that a command made of it
		runtime.Goexit()
	}
	if err == nil {
		for _, fn := range after {
			w.callback("after-commit function panicked", fn)
		}
	}
	return err
}

func (w *Writer) recycle(c *waiting) {
	c.reset()
	w.pool.Put(c)
}

// claim makes the sender the one that runs groups, if nobody does.
func (w *Writer) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	claimed := w.idle && !w.closed
	if claimed {
		w.idle = false
	}
	return claimed
}

func (w *Writer) enqueue(c *waiting, first bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	case first:
		w.first.push(c)
	case w.queue.len() >= w.cfg.Queue:
		return ErrQueueFull
	default:
		w.queue.push(c)
	}
	w.rouse()
	return nil
}

// rouse wakes the loop if it sleeps; w.mu is held.
func (w *Writer) rouse() {
	if w.idle {
		w.idle = false
		w.wake <- struct{}{}
	}
}

// callback keeps a panic in a hook from what called it: the commit it was told of has happened.
func (w *Writer) callback(message string, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error(message, "panic", fmt.Sprint(p))
		}
	}()
	fn()
}

// stop makes cause the answer to every command that has not been started.
func (w *Writer) stop(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = cause
	}
	w.closed = true
	for _, l := range []*line{&w.first, &w.queue} {
		for c := l.pop(); c != nil; c = l.pop() {
			if c.state.CompareAndSwap(waitingQueued, waitingStarted) {
				c.answer(w.err)
			}
		}
	}
	if w.rider != nil {
		w.rider.answer(w.err)
		w.rider = nil
	}
	w.rouse()
}

// stopped tells why the writer has stopped, however it was.
func (w *Writer) stopped() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
