package mediator

import (
	"context"
	"errors"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
)

// Step runs the command that a delivery asks for, in the delivery's own transaction: a journey's next step (P53), or what a reaction does.
// The command is validated and authorized like any other and has a unit of work of its own; the dispatcher's mark that the message was
// handled, the command's change, what it raises, and the settling of the delivery, which comes last, are committed together or not at
// all. So a repetition changes nothing, and a step whose lease was lost changes nothing either.
//
// The command acts as actor in the message's tenant. A refusal is permanent: no retry makes it another.
func Step[C Command, R any](ctx context.Context, tx *outbox.Tx, d outbox.Delivery, actor string, c C, handle Handler[C, R]) (R, error) {
	by := access.Principal{Actor: actor, Tenant: d.Message.Tenant, Role: access.Operator}
	headers := map[string]string{"causation": string(d.Message.ID)}
	for _, name := range []string{"correlation", "traceparent"} {
		if value := d.Message.Headers[name]; value != "" {
			headers[name] = value
		}
	}
	ctx = WithOrigin(access.With(ctx, by), headers)
	result, err := func() (R, error) {
		if _, err := admit(ctx, c); err != nil {
			var none R
			return none, err
		}
		return Run(ctx, tx, by, c, handle)
	}()
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) || errors.Is(err, ErrUndeclaredEffect) {
		err = outbox.Permanent(err)
	}
	return result, err
}
