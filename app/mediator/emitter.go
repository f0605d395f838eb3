package mediator

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// Emitter runs the reactions that the outbox excludes (P4, P5): their loss is accepted, and somebody can repeat them by hand. They are
// handed over after a commit, wait in memory, and run one at a time. Nothing of them is stored; what waits when the process ends is lost.
type Emitter struct {
	logger *slog.Logger
	wake   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []reaction
	closed  bool
}

type reaction struct {
	name, key string
	run       func(context.Context) error
}

// mostWaiting bounds what waits. One more is dropped, and logged.
const mostWaiting = 256

// NewEmitter starts an emitter. Close it.
func NewEmitter(logger *slog.Logger) *Emitter {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Emitter{logger: logger, wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel}
	go e.loop(ctx)
	return e
}

// Emit hands a reaction over; call it after the commit. While one of the same name and key waits already, that one does for both. It never
// blocks.
func (e *Emitter) Emit(name, key string, run func(context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.waiting {
		if r.name == name && r.key == key {
			return
		}
	}
	switch {
	case e.closed:
		return
	case len(e.waiting) >= mostWaiting:
		e.logger.Warn("reaction dropped: too many wait", "reaction", name)
		return
	}
	e.waiting = append(e.waiting, reaction{name, key, run})
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close ends what runs and forgets what waits.
func (e *Emitter) Close() {
	e.mu.Lock()
	e.closed, e.waiting = true, nil
	e.mu.Unlock()
	e.cancel()
	<-e.done
}

func (e *Emitter) loop(ctx context.Context) {
	defer close(e.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for r, ok := e.next(); ok; r, ok = e.next() {
			if err := e.run(ctx, r); err != nil && ctx.Err() == nil {
				e.logger.Warn("reaction failed; repeat it by hand", "reaction", r.name, "error", err)
			}
		}
	}
}

func (e *Emitter) next() (r reaction, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return r, false
	}
	r, e.waiting = e.waiting[0], e.waiting[1:]
	return r, true
}

func (e *Emitter) run(ctx context.Context, r reaction) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return r.run(ctx)
}
