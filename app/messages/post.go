package messages

import (
	"context"
	"encoding/json"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Module is the use cases of messages.
type Module struct {
	mediator *mediator.Mediator
	judge    emits.Judge
	leases   Leases
}

// Leases tells who holds a delivery that a consumer has pulled, and until when; false: nobody does.
type Leases func(handler outbox.HandlerName, id outbox.DeliveryID, fence outbox.Fence) (owner string, expires time.Time, held bool)

// New returns the module.
func New(m *mediator.Mediator, judge emits.Judge, leases Leases) *Module {
	return &Module{mediator: m, judge: judge, leases: leases}
}

// Posted answers a post.
type Posted struct {
	ID         outbox.MessageID `json:"id"`
	Type       string           `json:"type"`
	Deliveries int              `json:"deliveries" doc:"how many handlers it waits for"`
}

// Post stages one event. receipt, unless nil, is the one of the caller's idempotency key. An id that the caller gave is a key of its own:
// the same id with equal content is answered like the first time, with other content it is refused.
func (s *Module) Post(ctx context.Context, e emits.Emit, receipt *mediator.Receipt) (mediator.Answer, error) {
	return mediator.SendOnce(ctx, s.mediator, receipt.Only(), &post{emit: e, judge: s.judge}, stage, encode)
}

// post is the command.
type post struct {
	emit    emits.Emit
	judge   emits.Judge
	message outbox.Message
}

// UseCase is the one that a post belongs to.
var UseCase = mediator.UseCase{Record: "use-cases/post-a-message", Emits: []string{records.AnyEvent}}

// UseCase implements mediator.Described.
func (p *post) UseCase() mediator.UseCase { return UseCase }

// Validate implements mediator.Command.
func (p *post) Validate() (err error) {
	p.message, err = p.judge.Read("", p.emit)
	return err
}

// Authorize implements mediator.Command.
func (p *post) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// outcome is either newly raised, and filled once it is staged, or known from before.
type outcome struct {
	raised *mediator.Raised
	known  *emits.Known
}

func stage(ctx context.Context, work *mediator.UnitOfWork, p *post) (outcome, error) {
	known, err := emits.FindAll(ctx, work.Tx, work.By.Tenant, "", []outbox.Message{p.message})
	if err != nil {
		return outcome{}, err
	}
	if known != nil {
		return outcome{known: &known[0]}, nil
	}
	return outcome{raised: work.Raise(p.message)}, nil
}

func encode(o outcome) (mediator.Answer, error) {
	if k := o.known; k != nil {
		body, err := json.Marshal(Posted{ID: k.ID, Type: k.Type, Deliveries: k.Deliveries})
		return mediator.Answer{Status: 200, Body: body, Replayed: true}, err
	}
	body, err := json.Marshal(Posted{ID: o.raised.ID, Type: o.raised.Type, Deliveries: o.raised.Deliveries})
	return mediator.Answer{Status: 201, Body: body}, err
}
