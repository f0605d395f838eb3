package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Outside handles a delivery whose effect lies outside the database: at least once, never inside a transaction. ctx carries
// the attempt's deadline. Nil means that the target accepted the message; see Failure for everything else.
type Outside func(ctx context.Context, d Delivery) error

// InTx handles a delivery whose effect is a change of the same database. It runs in the writer: the change, the mark that
// this message was handled, and the settling of the delivery are one savepoint under the fence, so the effect happens exactly
// once. It must do nothing but its own SQL.
type InTx func(ctx context.Context, tx *Tx, d Delivery) error

// Delivery is what a handler receives: one claimed delivery with its message.
type Delivery struct {
	ID      DeliveryID
	Handler HandlerName
	Message Message
	// Attempt counts the starts of this delivery, this one included. It was stored before the handler was called.
	Attempt int
	// Charged counts those attempts that the retry bound applies to.
	Charged int
	// Fence rises with every claim; a target can refuse a lower one.
	Fence Fence
	// LeaseExpires is when another claim may follow.
	LeaseExpires time.Time

	interrupted      bool
	waited           int64 // microseconds of backoff
	unreachableSince int64 // microseconds; zero: reachable so far
	blocks           bool
}

// Route says which messages reach a handler.
type Route struct {
	// Kind defaults to IntegrationEvent.
	Kind Kind
	// Pattern is a GLOB pattern over types for integration events ("order-*"), the exact type otherwise.
	Pattern string
	// Tenant limits the route to one tenant. Defaults to every tenant.
	Tenant TenantID
}

// Handler is one handler of messages, with a lane of its own.
type Handler struct {
	Name   HandlerName
	Routes []Route
	// Exactly one of Outside and InTx is set.
	Outside Outside
	InTx    InTx
	// RepeatKey says by what the target of an Outside handler suppresses repeats (P19), for the records: "webhook-id", "the
	// loan's number" …
	RepeatKey string
	// Source tells who keeps the routes. Defaults to "code".
	Source string
	// Concurrency is how many attempts run side by side. Defaults to 4.
	Concurrency int
	// Width, unless nil, is how many attempts may run side by side at the moment, up to Concurrency: for a handler that waits to be asked, which
	// would otherwise be charged for attempts that nobody makes. It may be asked in the writer, so it must not
	// block, nor call the dispatcher or the writer. Call Wake when it grows.
	Width func() int
	// Settled, unless nil, is told of each attempt of the handler whose outcome is on the disk, or has come too late (stale). It must not block,
	// nor call the dispatcher.
	Settled func(d Delivery, stale bool)
	// Rate is how many attempts a second are started at the most; 0 means no bound.
	Rate float64
	// Timeout bounds one attempt. Defaults to 15 s.
	Timeout time.Duration
	// NeedsClock: its attempts need the right time, as for TLS or for signatures with a date. They wait while the clock cannot be right.
	NeedsClock bool
	// SkipDeadLetters lets the later messages of an ordering key pass a dead letter, those there are already included. By default it holds
	// them back. What was passed stays outside the order, replayed or not, and also when the handler holds back again.
	SkipDeadLetters bool
	// Readers, unless nil, says what the handler can read. It is given every message in the version that it knows; what cannot be read stays
	// pending and visible.
	Readers *Readers
}

// MaxConcurrency is the most attempts that one lane may run side by side.
const MaxConcurrency = 1024

func (h Handler) validate() (Handler, error) {
	switch {
	case !ValidID(string(h.Name)):
		return h, fmt.Errorf("register handler %q: the name must be 1 to 64 of A-Z a-z 0-9 _ -", h.Name)
	case h.Name == Unrouted:
		return h, fmt.Errorf("register handler %q: this name is reserved", h.Name)
	case (h.Outside == nil) == (h.InTx == nil):
		return h, fmt.Errorf("register handler %q: set either Outside or InTx", h.Name)
	case h.Outside != nil && h.RepeatKey == "":
		return h, fmt.Errorf("register handler %q: RepeatKey must name the key by which its target suppresses repeats", h.Name)
	case h.Concurrency < 0 || h.Concurrency > MaxConcurrency:
		return h, fmt.Errorf("register handler %q: concurrency must be 1 to %d", h.Name, MaxConcurrency)
	case h.Timeout < 0:
		return h, errors.New("register handler: timeout must not be negative")
	case !(h.Rate >= 0) || math.IsInf(h.Rate, 1):
		return h, fmt.Errorf("register handler %q: rate must be 0 or a positive number", h.Name)
	}
	if h.Concurrency == 0 {
		h.Concurrency = 4
	}
	if h.Timeout == 0 {
		h.Timeout = 15 * time.Second
	}
	if h.Source == "" {
		h.Source = "code"
	}
	for i, r := range h.Routes {
		if r.Kind == "" {
			h.Routes[i].Kind = IntegrationEvent
		}
		if r.Tenant == "" {
			h.Routes[i].Tenant = "*"
		}
	}
	return h, nil
}
