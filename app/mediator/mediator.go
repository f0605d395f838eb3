package mediator

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Mediator leads commands and queries to their handlers.
type Mediator struct {
	writer   *outbox.Writer
	read     *bun.DB
	keep     time.Duration
	useCases map[string]bool // nil: any
}

// Config is what a Mediator needs.
type Config struct {
	// Writer is the store's one writer. Required.
	Writer *outbox.Writer
	// Read is the pool of query-only connections. Required.
	Read *bun.DB
	// KeepAnswers is how long the answer to a command with an idempotency key is kept. Defaults to 72 h.
	KeepAnswers time.Duration
	// UseCases lists those whose commands are carried out. Nil: every one.
	UseCases []UseCase
}

// New returns the mediator of a store.
func New(config Config) *Mediator {
	if config.KeepAnswers == 0 {
		config.KeepAnswers = 72 * time.Hour
	}
	m := &Mediator{writer: config.Writer, read: config.Read, keep: config.KeepAnswers}
	if config.UseCases != nil {
		m.useCases = make(map[string]bool, len(config.UseCases))
		for _, u := range config.UseCases {
			m.useCases[u.name()] = true
		}
	}
	return m
}

// registered refuses a command of a use case that nobody listed.
func (m *Mediator) registered(c Command) error {
	if d, ok := c.(Described); ok && m.useCases != nil && !m.useCases[d.UseCase().name()] {
		return fmt.Errorf("%w: %s", ErrUnregistered, d.UseCase().name())
	}
	return nil
}

// Command is a request to change something.
type Command interface {
	// Validate judges what can be judged without the store; its error is a *Refusal.
	Validate() error
	// Authorize says whether the caller may; its error wraps access.ErrForbidden.
	Authorize(by access.Principal) error
}

// Handler makes a command's change in its unit of work.
type Handler[C Command, R any] func(ctx context.Context, work *UnitOfWork, c C) (R, error)

// Send runs a command and answers when its commit is on the disk. Any error but outbox.ErrInDoubt means that nothing has changed.
func Send[C Command, R any](ctx context.Context, m *Mediator, c C, handle Handler[C, R]) (R, error) {
	var result R
	if err := m.registered(c); err != nil {
		return result, err
	}
	by, err := admit(ctx, c)
	if err != nil {
		return result, err
	}
	err = m.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		var err error
		result, err = Run(ctx, tx, by, c, handle)
		return err
	})
	if err != nil {
		var none R
		return none, err
	}
	return result, nil
}

// Run is a command's unit of work inside a transaction that is open already: the handler, then the staging of what it raised. Send
// calls it; so does a handler of the outbox whose message is the next command of a journey.
func Run[C Command, R any](ctx context.Context, tx *outbox.Tx, by access.Principal, c C, handle Handler[C, R]) (R, error) {
	work := &UnitOfWork{Tx: tx, By: by}
	if d, ok := any(c).(Described); ok {
		work.useCase = d.UseCase()
	}
	result, err := handle(ctx, work, c)
	if err == nil {
		err = work.stage(ctx)
	}
	if err != nil {
		var none R
		return none, err
	}
	return result, nil
}

// Query is a request to read something.
type Query interface {
	// Validate judges what can be judged without the store; its error is a *Refusal.
	Validate() error
	// Authorize says whether the caller may; its error wraps access.ErrForbidden.
	Authorize(by access.Principal) error
}

// Reader answers a query from the pool of query-only connections. by is the caller, whose tenant bounds what is read.
type Reader[Q Query, R any] func(ctx context.Context, db *bun.DB, by access.Principal, q Q) (R, error)

// Ask answers a query.
func Ask[Q Query, R any](ctx context.Context, m *Mediator, q Q, read Reader[Q, R]) (R, error) {
	by, err := admit(ctx, q)
	if err != nil {
		var none R
		return none, err
	}
	return read(ctx, m.read, by, q)
}

// admit validates and authorizes.
func admit(ctx context.Context, request Command) (access.Principal, error) {
	by, ok := access.From(ctx)
	if !ok {
		return by, access.ErrUnauthenticated
	}
	if err := request.Validate(); err != nil {
		return by, err
	}
	return by, request.Authorize(by)
}
