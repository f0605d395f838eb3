package lending

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// The journey "fulfil a reservation", and its steps: each is the type of a message, whose command is dispatched through the mediator in a
// fresh unit of work (P53).
const (
	journey    = "fulfil-a-reservation"
	stepHold   = "reservation-hold-copy"
	stepNotify = "reservation-notify-member"
	stepExpire = "reservation-expire-pickup"

	kindStep = outbox.JourneyStep
)

// effectNotice is the provider effect that tells a member something.
const effectNotice = "lending-notice"

// never leaves the time of delivery to the outbox: at once.
var never time.Time

// takeStep runs the step that a delivery asks for.
func (m *Module) takeStep(ctx context.Context, tx *outbox.Tx, d outbox.Delivery) error {
	const actor = "journey:" + journey
	switch d.Message.Type {
	case stepHold:
		return step(ctx, tx, d, actor, m.holdCopy)
	case stepNotify:
		return step(ctx, tx, d, actor, m.notifyMember)
	case stepExpire:
		return step(ctx, tx, d, actor, m.expirePickup)
	}
	return outbox.Permanent(fmt.Errorf("take step: the journey has no %s", d.Message.Type))
}

// nothing is what a step answers.
type nothing struct{}

// step reads a delivery's command and dispatches it.
func step[C mediator.Command](ctx context.Context, tx *outbox.Tx, d outbox.Delivery, actor string, handle mediator.Handler[C, nothing]) error {
	var c C
	if err := json.Unmarshal(d.Message.Payload, &c); err != nil {
		return outbox.Permanent(errUnreadablePayload)
	}
	_, err := mediator.Step(ctx, tx, d, actor, c, handle)
	return err
}

var errUnreadablePayload = errors.New("the payload is not what this step reads")
