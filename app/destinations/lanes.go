package destinations

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/integrations/file"
	"github.com/posthorn/posthorn/app/integrations/pull"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/outbox"
)

// Restore finishes the deletions that an earlier boot began and registers every stored destination. It is called once, before the dispatcher
// starts.
func (s *Service) Restore(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.reconcile(ctx); err != nil {
		return err
	}
	left, err := unfinished(ctx, s.config.Read.DB)
	if err != nil {
		return err
	}
	for destination, reason := range left {
		_, settled, err := s.settle(ctx, destination, reason)
		if err != nil {
			return err
		}
		if !settled {
			s.finishLater(destination, reason)
		}
	}
	stored, err := list(ctx, s.config.Read.DB, everyTenant, "", MaxDestinations)
	if err != nil {
		return err
	}
	for _, d := range stored {
		if err := s.register(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// flow registers a destination that has just been stored. Its error is not the caller's: the destination exists, and the next start
// registers it.
func (s *Service) flow(ctx context.Context, d Destination) {
	if err := s.register(ctx, d); err != nil {
		s.config.Logger.Error("a destination's lane is not up", "destination", d.Name, "error", err)
	}
}

// register brings up a destination's lane: flowing, held as stored, or held because it cannot be built.
func (s *Service) register(ctx context.Context, d Destination) error {
	bounds := d.bounds(s.config.Defaults)
	handler := outbox.Handler{Name: outbox.HandlerName(d.Name), Source: "destination", Concurrency: bounds.concurrency, Timeout: bounds.timeout,
		Rate: bounds.rate, SkipDeadLetters: bounds.order == Skip, NeedsClock: d.Kind == Webhook} // signatures carry the time, and TLS needs it
	for _, pattern := range d.Types {
		handler.Routes = append(handler.Routes, outbox.Route{Pattern: pattern, Tenant: d.Tenant})
	}
	built, err := s.build(d, bounds)
	hold, broken := d.Hold, ""
	if err != nil {
		s.config.Logger.Error("a destination cannot be used; its deliveries are held", "destination", d.Name, "error", err)
		broken = unusablePrefix + err.Error()
		if hold == "" || isUnusable(hold) {
			hold = broken
		}
		built = integration{key: "none", deliver: func(context.Context, outbox.Delivery) error {
			return &outbox.Failure{Class: outbox.Unreachable, Err: errors.New(broken)}
		}}
	} else if isUnusable(hold) {
		hold = ""
	}
	handler.RepeatKey, handler.Outside = built.key, built.deliver
	if built.queue != nil {
		handler.Width, handler.Settled, handler.Timeout = built.queue.Width, built.queue.Settled, s.config.Defaults.PullCap
	}
	if err := s.config.Dispatcher.Register(ctx, handler); err != nil {
		return fmt.Errorf("register destination %s: %w", d.Name, err)
	}
	s.keep(d.Name, lane{broken: broken, close: built.close, tenant: d.Tenant, deliver: built.deliver, queue: built.queue})
	if hold != d.Hold {
		d.Hold = hold
		return s.follow(ctx, d)
	}
	return nil
}

// integration is a destination's way out, built.
type integration struct {
	deliver outbox.Outside
	key     string // by what the target suppresses repeats (P19)
	close   func()
	queue   *pull.Queue // where consumers ask; nil for what is sent
}

func (s *Service) build(d Destination, bounds bounds) (integration, error) {
	switch d.Kind {
	case Webhook:
		secrets, err := d.secrets(s.config.Key)
		if err != nil {
			return integration{}, err
		}
		target, err := webhook.New(webhook.Config{URL: d.Options.URL, Secrets: secrets, Timeout: bounds.timeout, Concurrency: bounds.concurrency,
			RetryAfterCap: s.config.Defaults.RetryAfterCap, Version: s.config.Version, Egress: s.config.Egress})
		if err != nil {
			return integration{}, err
		}
		return integration{deliver: target.Deliver, key: "webhook-id", close: target.Close}, nil
	case File:
		target, err := file.New(s.fileOf(d.Options.Path, d.Tenant))
		if err != nil {
			return integration{}, err
		}
		return integration{deliver: target.Deliver, key: "id", close: target.Close}, nil
	case Pull:
		queue := pull.New(pull.Config{Lease: bounds.timeout, Cap: s.config.Defaults.PullCap, Wake: s.config.Dispatcher.Wake})
		return integration{deliver: queue.Deliver, key: "the message's id", close: queue.Close, queue: queue}, nil
	default:
		return integration{}, fmt.Errorf("this program does not know destinations of the kind %q", d.Kind)
	}
}

// lane is what the service knows of a running lane beside what is stored.
type lane struct {
	broken string // why it cannot be used; empty when it can
	close  func() // lets go of what its integration holds open; nil for nothing
	tenant outbox.TenantID
	// deliver is the integration's, past the lane.
	deliver outbox.Outside
	queue   *pull.Queue // nil for what is sent
}

// keep remembers a lane, in place of the one before it.
func (s *Service) keep(destination string, l lane) {
	s.mu.Lock()
	before := s.lanes[destination]
	s.lanes[destination] = l
	s.mu.Unlock()
	before.end()
}

func (s *Service) forget(destination string) {
	s.mu.Lock()
	before := s.lanes[destination]
	delete(s.lanes, destination)
	s.mu.Unlock()
	before.end()
}

func (s *Service) broken(destination string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes[destination].broken
}

func (l lane) end() {
	if l.close != nil {
		l.close()
	}
}
