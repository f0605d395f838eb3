package mediator

import (
	"context"
	"fmt"
	"maps"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
)

// UnitOfWork is one command's business session: its part of the writer's transaction, who sent it, and what it raised.
type UnitOfWork struct {
	*outbox.Tx
	// By is the caller.
	By access.Principal

	useCase UseCase
	raised  []*Raised
}

// Raised is a message that a handler raised. The post-handler fills what only staging knows.
type Raised struct {
	outbox.Message
	// Deliveries is how many handlers it waits for.
	Deliveries int
}

// Raise hands a message to the post-handler, which stages it in this unit of work once the handler has returned. The message belongs to
// the caller's tenant unless it names another.
func (u *UnitOfWork) Raise(m outbox.Message) *Raised {
	if m.Tenant == "" {
		m.Tenant = u.By.Tenant
	}
	r := &Raised{Message: m}
	u.raised = append(u.raised, r)
	return r
}

const countDeliveries = `SELECT count(*) FROM outbox_deliveries WHERE seq = ?`

// stage is the post-handler (P6).
func (u *UnitOfWork) stage(ctx context.Context) error {
	origin, _ := ctx.Value(originKey{}).(map[string]string)
	for _, r := range u.raised {
		if !u.useCase.declares(r.Message) {
			return fmt.Errorf("%w: %s raised %s", ErrUndeclaredEffect, u.useCase.name(), r.Type)
		}
		if len(origin) > 0 {
			headers := maps.Clone(origin)
			maps.Copy(headers, r.Headers)
			r.Headers = headers
		}
		staged, err := outbox.Stage(ctx, u.Tx, r.Message)
		if err != nil {
			return err
		}
		r.Message = staged
		count, err := u.Stmt(ctx, countDeliveries)
		if err != nil {
			return fmt.Errorf("count deliveries: %w", err)
		}
		if err := count.QueryRowContext(ctx, staged.Seq).Scan(&r.Deliveries); err != nil {
			return fmt.Errorf("count deliveries: %w", err)
		}
	}
	return nil
}

type originKey struct{}

// WithOrigin returns a context whose commands give these headers to the messages that they raise: where they come from (traceparent,
// correlation, causation, producer). A header that a message has already stays.
func WithOrigin(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, originKey{}, headers)
}
