package destinations

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// name is a destination's name as a caller gave it. One that cannot be a name is unknown like any other.
type name string

// Validate finds nothing wrong: whether the destination exists, the store tells.
func (name) Validate() error { return nil }

type pause struct {
	name
	reason string
}

const maxReason = 500

// Validate bounds the reason.
func (p pause) Validate() error {
	var v mediator.Violations
	if len(p.reason) > maxReason || !utf8.ValidString(p.reason) || strings.ContainsFunc(p.reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.Add("/reason", "must be at most 500 characters on one line")
	}
	return v.Refusal("invalid-reason", "The destination cannot be paused for this reason.", "")
}

// Authorize asks for an operator.
func (pause) Authorize(by access.Principal) error { return by.Require(access.Operator) }

type resume struct{ name }

// Authorize asks for an operator.
func (resume) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Pause holds a destination's deliveries: they stay pending and visible, running attempts finish. It outlives the process. reason may be
// empty. One that is disabled stays disabled.
func (s *Service) Pause(ctx context.Context, destination, reason string) (View, error) {
	return s.change(ctx, pause{name(destination), reason}, destination, "destination.pause", func(d Destination, by access.Principal) (string, string, error) {
		if d.State() == Disabled {
			return d.Hold, reason, nil
		}
		return pauseReason(by.Actor, reason), reason, nil
	})
}

// Resume lets a held destination flow again.
func (s *Service) Resume(ctx context.Context, destination string) (View, error) {
	return s.change(ctx, resume{name(destination)}, destination, "destination.resume", func(d Destination, _ access.Principal) (string, string, error) {
		if broken := s.broken(d.Name); broken != "" {
			return "", "", unusable(broken)
		}
		return "", d.Hold, nil
	})
}

// change gives a destination another hold: in the store with its audit row, then in the running lane.
func (s *Service) change(ctx context.Context, c mediator.Command, destination, action string,
	decide func(Destination, access.Principal) (reason, detail string, err error)) (View, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	changed, err := mediator.Send(ctx, s.config.Mediator, c, func(ctx context.Context, work *mediator.UnitOfWork, _ mediator.Command) (Destination, error) {
		d, err := find(ctx, work.Tx.Tx.Tx, work.By.Tenant, destination)
		if err != nil {
			return d, err
		}
		reason, detail, err := decide(d, work.By)
		if err != nil {
			return d, err
		}
		if d.Hold != reason {
			if d.Hold, err = hold(ctx, work.Tx, d.Name, reason); err != nil {
				return d, err
			}
		}
		return d, access.Audit(ctx, work.Tx, work.By, action, d.Name, detail)
	})
	if err != nil {
		return View{}, err
	}
	if err := s.follow(context.WithoutCancel(ctx), changed); err != nil {
		return View{}, err
	}
	s.config.Observe(changed.Tenant, changed.Name, strings.TrimPrefix(action, "destination.")+"d")
	by, _ := access.From(ctx)
	return changed.view(by, s.config.Defaults), nil
}

// follow brings the running lane to the stored hold.
func (s *Service) follow(ctx context.Context, d Destination) error {
	if d.Hold == "" || d.Hold == outbox.BackfillHold {
		return s.config.Dispatcher.Resume(ctx, outbox.HandlerName(d.Name))
	}
	return s.config.Dispatcher.Hold(ctx, outbox.HandlerName(d.Name), d.Hold)
}
