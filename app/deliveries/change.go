package deliveries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// Module is the use cases of deliveries.
type Module struct {
	mediator   *mediator.Mediator
	dispatcher *outbox.Dispatcher
}

// New returns the module.
func New(m *mediator.Mediator, dispatcher *outbox.Dispatcher) *Module {
	return &Module{mediator: m, dispatcher: dispatcher}
}

// Changed is a delivery after an operator's change.
type Changed struct {
	ID           outbox.DeliveryID  `json:"id"`
	Message      outbox.MessageID   `json:"message"`
	Handler      outbox.HandlerName `json:"handler"`
	State        outbox.StateName   `json:"state" enum:"pending,dead-letter"`
	FailureClass outbox.Class       `json:"failure_class,omitempty" doc:"of the latest attempt that failed, or cancelled or skipped"`
}

// change is a command for one delivery.
type change struct {
	id     outbox.DeliveryID
	reason string
	action string // as the audit names it
	do     func(ctx context.Context, tx *outbox.Tx, by outbox.Operator, id outbox.DeliveryID) (outbox.Change, error)
}

// Validate implements mediator.Command.
func (c change) Validate() error { return judgeReason(c.reason) }

// Authorize implements mediator.Command.
func (c change) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Replay returns a dead letter to pending. receipt, unless nil, is the one of the caller's idempotency key.
func (s *Module) Replay(ctx context.Context, id outbox.DeliveryID, reason string, receipt *mediator.Receipt) (mediator.Answer, error) {
	// Its audit row is the one in outbox_replays.
	return s.change(ctx, change{id: id, reason: reason, do: s.dispatcher.Replay}, receipt)
}

// Cancel gives up a pending delivery.
func (s *Module) Cancel(ctx context.Context, id outbox.DeliveryID, reason string, receipt *mediator.Receipt) (mediator.Answer, error) {
	return s.change(ctx, change{id: id, reason: reason, action: "delivery.cancel", do: s.dispatcher.Cancel}, receipt)
}

// Skip passes over a dead letter that holds back its ordering key.
func (s *Module) Skip(ctx context.Context, id outbox.DeliveryID, reason string, receipt *mediator.Receipt) (mediator.Answer, error) {
	return s.change(ctx, change{id: id, reason: reason, action: "delivery.skip", do: s.dispatcher.Skip}, receipt)
}

func (s *Module) change(ctx context.Context, c change, receipt *mediator.Receipt) (mediator.Answer, error) {
	answer, err := mediator.SendOnce(ctx, s.mediator, receipt.Only(), c, func(ctx context.Context, work *mediator.UnitOfWork, c change) (Changed, error) {
		changed, err := c.do(ctx, work.Tx, operator(work, c.reason), c.id)
		if err != nil {
			return Changed{}, err
		}
		if c.action != "" {
			err = access.Audit(ctx, work.Tx, work.By, c.action, string(changed.Message), fmt.Sprintf("delivery %d to %s: %s", c.id, changed.Handler, c.reason))
		}
		return Changed{ID: changed.Delivery, Message: changed.Message, Handler: changed.Handler, State: changed.State, FailureClass: changed.Class}, err
	}, encode[Changed])
	return answer, refuse(err)
}

// Resent is the new deliveries of a message that was sent again.
type Resent struct {
	Message    outbox.MessageID    `json:"message"`
	Deliveries []outbox.DeliveryID `json:"deliveries" doc:"the new ones, one for each handler; each names the one that it sends again"`
}

// resend is the command.
type resend struct {
	message outbox.MessageID
	handler outbox.HandlerName
	reason  string
}

// Validate implements mediator.Command.
func (r resend) Validate() error {
	var wrong mediator.Violations
	if r.handler != "" && !outbox.ValidID(string(r.handler)) {
		wrong.Add("/handler", "must be the name of a handler or destination")
	}
	if err := wrong.Refusal("bad-handler", "No handler can have such a name.", "Leave it out for every handler that accepted the message."); err != nil {
		return err
	}
	return judgeReason(r.reason)
}

// Authorize implements mediator.Command.
func (r resend) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Resend sends a dispatched message again, to one handler or to each that accepted it.
func (s *Module) Resend(ctx context.Context, message, handler, reason string, receipt *mediator.Receipt) (mediator.Answer, error) {
	c := resend{outbox.MessageID(message), outbox.HandlerName(handler), reason}
	answer, err := mediator.SendOnce(ctx, s.mediator, receipt.Only(), c, func(ctx context.Context, work *mediator.UnitOfWork, c resend) (Resent, error) {
		made, err := s.dispatcher.Resend(ctx, work.Tx, operator(work, c.reason), c.message, c.handler)
		if err != nil {
			return Resent{}, err
		}
		detail := c.reason
		if c.handler != "" {
			detail = "to " + string(c.handler) + ": " + c.reason
		}
		return Resent{c.message, made}, access.Audit(ctx, work.Tx, work.By, "message.resend", string(c.message), detail)
	}, encode[Resent])
	return answer, refuse(err)
}

func operator(work *mediator.UnitOfWork, reason string) outbox.Operator {
	return outbox.Operator{Tenant: work.By.Tenant, Actor: work.By.Actor, Reason: reason}
}

func encode[R any](result R) (mediator.Answer, error) {
	body, err := json.Marshal(result)
	return mediator.Answer{Status: 200, Body: body}, err
}

func judgeReason(reason string) error {
	if err := outbox.JudgeReason(reason); err != nil {
		return mediator.Violations{{Path: "/reason", Message: "must be 1 to 500 characters on one line"}}.
			Refusal("bad-reason", "Such a change needs its reason.", "The audit keeps it beside your name.")
	}
	return nil
}

// refuse turns the outbox's answers to an operator into those to a caller.
func refuse(err error) error {
	conflict := (*outbox.StateConflict)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		hint := "A dead letter can be replayed; what is pending can be cancelled; what was dispatched can be sent again."
		if conflict.State == outbox.StateProcessing {
			hint = "An attempt runs: its outcome is the target's to say. Look again in a moment."
		}
		return &mediator.Refusal{Kind: mediator.Conflict, Code: "wrong-state",
			Sentence: fmt.Sprintf("The delivery is %s; this needs one that is %s.", conflict.State, conflict.Want), Hint: hint}
	case errors.Is(err, outbox.ErrNoDelivery):
		return &mediator.Refusal{Kind: mediator.Missing, Code: "no-delivery", Sentence: "There is no such delivery.",
			Hint: "It may belong to another tenant, or have passed its retention. posthorn messages show ID names the deliveries of a message."}
	case errors.Is(err, outbox.ErrNoMessage):
		return &mediator.Refusal{Kind: mediator.Missing, Code: "no-message", Sentence: "There is no such message.",
			Hint: "It may belong to another tenant, or have passed its retention."}
	case errors.Is(err, outbox.ErrUnknownHandler):
		return &mediator.Refusal{Kind: mediator.Conflict, Code: "no-handler", Sentence: "This program has no handler of that name any more.",
			Hint: "Create the destination again under its name; what was given up for it can then be replayed."}
	case errors.Is(err, outbox.ErrBlocksNothing):
		return &mediator.Refusal{Kind: mediator.Conflict, Code: "blocks-nothing", Sentence: "This dead letter holds back nothing, so there is nothing to pass over.",
			Hint: "Only a dead letter with an ordering key, at a destination whose order is block, does."}
	case errors.Is(err, outbox.ErrNotDispatched):
		return &mediator.Refusal{Kind: mediator.Conflict, Code: "not-dispatched", Sentence: "No delivery of this message was accepted yet, so none can be sent again.",
			Hint: "A dead letter is replayed instead."}
	}
	return err
}
