package lending

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Module is the use cases of the branch.
type Module struct {
	mediator *mediator.Mediator
	emitter  *mediator.Emitter
	records  func() *records.Set
	observe  func(outbox.TenantID, Change)
}

// Config is what a Module needs.
type Config struct {
	// Mediator is the way to the store. Required.
	Mediator *mediator.Mediator
	// Records gives the records in effect: rules and schemas. Required.
	Records func() *records.Set
	// Observe, unless nil, is told what changed, after the commit. It must not block.
	Observe func(outbox.TenantID, Change)
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Change is what an observer is told.
type Change struct {
	// Loan is the loan that changed, with its version; empty when something else of the branch did.
	Loan    string
	Version int64
	// What happened: borrowed, renewed, returned, reserved …
	What string
	// Statistics: the counts changed, and only they.
	Statistics bool
}

// New returns the module. Close it.
func New(config Config) *Module {
	if config.Observe == nil {
		config.Observe = func(outbox.TenantID, Change) {}
	}
	return &Module{mediator: config.Mediator, emitter: mediator.NewEmitter(config.Logger), records: config.Records, observe: config.Observe}
}

// Close ends the reactions that run from memory.
func (m *Module) Close() { m.emitter.Close() }

// UseCases lists what the branch does. Each is tied to its record; a start without one fails.
func UseCases() []mediator.UseCase {
	return []mediator.UseCase{
		registering, adding, borrowing, renewing, returning, reserving, cancelling, collecting, suspending, reinstating, refreshing,
		holding, notifying, expiring,
		counting, reminding,
	}
}

func (m *Module) rules() Rules { return rulesOf(m.records()) }

// changed tells the observer, once the work is committed.
func (m *Module) changed(work *mediator.UnitOfWork, c Change) {
	tenant := work.By.Tenant
	work.AfterCommit(func() { m.observe(tenant, c) })
}

// send runs a command that may come again under an idempotency key, and writes its result as the answer.
func send[C mediator.Command, R any](ctx context.Context, m *Module, receipt *mediator.Receipt, status int, c C, handle mediator.Handler[C, R]) (mediator.Answer, error) {
	return mediator.SendOnce(ctx, m.mediator, receipt.Only(), c, handle, func(result R) (mediator.Answer, error) {
		body, err := json.Marshal(result)
		return mediator.Answer{Status: status, Body: body}, err
	})
}

const (
	made = http.StatusCreated
	done = http.StatusOK
)

// emit raises an integration event. Its payload is held against the schema of its record, so that nothing is staged that its readers would
// not take.
func (m *Module) emit(work *mediator.UnitOfWork, name string, version int, orderingKey string, payload any) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("emit %s: %w", name, err)
	}
	event, ok := m.records().IntegrationEvent(name)
	if !ok {
		return fmt.Errorf("emit %s: %w", name, records.ErrNoVersion)
	}
	if err := event.Validate(version, text); err != nil {
		return fmt.Errorf("emit %s: %w", name, err)
	}
	work.Raise(outbox.Message{Kind: outbox.IntegrationEvent, Type: name, SchemaVersion: version, OrderingKey: orderingKey, Payload: text})
	return nil
}

// run raises a journey's step or a provider effect; at, unless zero, is the time before which it does not happen.
func (m *Module) run(work *mediator.UnitOfWork, kind outbox.Kind, name string, at time.Time, payload any) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	work.Raise(outbox.Message{Kind: kind, Type: name, DeliverAt: at, Payload: text})
	return nil
}

func printable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// moment reads a time of the store.
func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
