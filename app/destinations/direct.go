package destinations

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/outbox"
)

// ErrUnknown is returned, wrapped, for a destination that the tenant does not have.
var ErrUnknown = errors.New("there is no such destination")

// SendDirect sends a message by a destination's integration, past its lane: no queue, no breaker, no pause and no record of it. It is for
// what must not wait behind the deliveries that it tells of.
func (s *Service) SendDirect(ctx context.Context, tenant outbox.TenantID, destination string, attempt int, m outbox.Message) error {
	s.mu.Lock()
	l, there := s.lanes[destination]
	s.mu.Unlock()
	if !there || l.tenant != tenant {
		return fmt.Errorf("send to %s: %w", destination, ErrUnknown)
	}
	return l.deliver(ctx, outbox.Delivery{Handler: outbox.HandlerName(destination), Message: m, Attempt: attempt, Charged: attempt})
}

// TenantOf says whose destination a handler is. Handlers that are none are the program's own, and count to the main tenant.
func (s *Service) TenantOf(handler outbox.HandlerName) outbox.TenantID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, there := s.lanes[string(handler)]; there {
		return l.tenant
	}
	return outbox.MainTenant
}
