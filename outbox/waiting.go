package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The states of a waiting command. Whoever moves it out of queued, the writer or the sender who gives up, owns it from then on.
const (
	waitingQueued int32 = iota
	waitingStarted
	waitingLeft
)

// waiting is a command on its way through the writer.
type waiting struct {
	fn       Command
	ctx      context.Context
	deadline time.Time // zero for none
	between  bool      // runs while no transaction is open, and gets none
	state    atomic.Int32
	answered chan struct{}
	timer    *time.Timer

	err   error
	after []func()
}

func newWaiting() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &waiting{answered: make(chan struct{}, 1), timer: timer}
}

// reset makes an answered command fit for the next sender; one that was left in the queue still belongs to the writer.
func (c *waiting) reset() {
	c.timer.Stop()
	c.fn, c.ctx, c.deadline, c.between, c.err, c.after = nil, nil, time.Time{}, false, nil, nil
	c.state.Store(waitingQueued)
}

// start claims the command for the writer; it answers false when the command must not run, because its sender has left or its time
// is over.
func (c *waiting) start() bool {
	if c.state.Load() != waitingStarted && !c.state.CompareAndSwap(waitingQueued, waitingStarted) {
		return false
	}
	switch {
	case c.ctx.Err() != nil:
		c.answer(refusal(c.ctx))
		return false
	case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		c.answer(ErrDeadline)
		return false
	}
	return true
}

// run calls the command. A panic becomes its error; an end of the goroutine goes on, with errCommandExited left behind.
func (c *waiting) run(tx *Tx, logger *slog.Logger) {
	ctx := &commandContext{Context: c.ctx}
	finished := false
	defer func() {
		ctx.over.Store(true)
		if finished {
			return
		}
		// A nil recovered value is runtime.Goexit: panic(nil) recovers as a *runtime.PanicNilError.
		if p := recover(); p != nil {
			c.err = fmt.Errorf("%w: %v", ErrCommandPanicked, p)
			logger.Error("command panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			return
		}
		c.err = errCommandExited
	}()
	c.err = c.fn(ctx, tx)
	finished = true
}

func (c *waiting) answer(err error) {
	c.err = err
	c.answered <- struct{}{}
}

// line is a first-in, first-out queue of commands.
type line struct {
	waiting []*waiting
	head    int
}

func (l *line) len() int { return len(l.waiting) - l.head }

func (l *line) push(c *waiting) {
	if l.head > 0 && len(l.waiting) == cap(l.waiting) {
		n := copy(l.waiting, l.waiting[l.head:])
		clear(l.waiting[n:])
		l.waiting, l.head = l.waiting[:n], 0
	}
	l.waiting = append(l.waiting, c)
}

func (l *line) peek() *waiting {
	if l.len() == 0 {
		return nil
	}
	return l.waiting[l.head]
}

func (l *line) pop() *waiting {
	if l.len() == 0 {
		return nil
	}
	c := l.waiting[l.head]
	l.waiting[l.head] = nil
	l.head++
	if l.head == len(l.waiting) {
		l.waiting, l.head = l.waiting[:0], 0
	}
	return c
}
