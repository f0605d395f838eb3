package destinations

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// TrialType is the type of the message that a trial sends.
const TrialType = "posthorn-trial"

// trials bounds the trials that run at once: each holds its caller's request for as long as the target takes.
const trials = 4

// Trial is how a destination took a message that was made for trying it out.
type Trial struct {
	Destination string             `json:"destination"`
	MessageID   outbox.MessageID   `json:"message_id" doc:"Its webhook-id; no message is stored under it."`
	Delivered   bool               `json:"delivered"`
	Class       outbox.Class       `json:"failure_class,omitempty" doc:"What a delivery that ended so would be; left out where it was delivered."`
	Error       string             `json:"error,omitempty"`
	Status      int                `json:"status,omitempty" doc:"The HTTP status of a refusal."`
	Excerpt     string             `json:"excerpt,omitempty" doc:"The beginning of what the target answered."`
	Duration    float64            `json:"duration_seconds" doc:"How long it took."`
	Freshness   mediator.Freshness `json:"freshness"`
}

type try struct{ name }

// Authorize asks for an operator.
func (try) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Try sends a destination one message made for it, signed as always, past its lane: while it is paused or its breaker is open too. Nothing
// is stored but a row of the audit, nothing is retried, and how it ends changes nothing of the lane.
func (s *Service) Try(ctx context.Context, destination string) (Trial, error) {
	select {
	case s.trying <- struct{}{}:
		defer func() { <-s.trying }()
	default:
		return Trial{}, busyTrying()
	}
	d, err := mediator.Send(ctx, s.config.Mediator, try{name(destination)}, func(ctx context.Context, work *mediator.UnitOfWork, t try) (Destination, error) {
		d, err := find(ctx, work.Tx.Tx.Tx, work.By.Tenant, string(t.name))
		if err != nil {
			return d, err
		}
		return d, access.Audit(ctx, work.Tx, work.By, "destination.test", d.Name, d.describe())
	})
	if err != nil {
		return Trial{}, err
	}
	s.mu.Lock()
	l := s.lanes[destination]
	s.mu.Unlock()
	if l.deliver == nil || l.broken != "" {
		return Trial{}, unusable(l.broken)
	}
	now := time.Now()
	m := outbox.Message{ID: outbox.MessageID("trial-" + uuid.NewString()), Tenant: d.Tenant, Kind: outbox.IntegrationEvent, Type: TrialType, SchemaVersion: 1,
		OccurredAt: now.UTC().Truncate(time.Microsecond), ContentType: "application/json", Payload: []byte(`{"trial":true}`)}
	ctx, cancel := context.WithTimeout(ctx, d.bounds(s.config.Defaults).timeout)
	defer cancel()
	err = l.deliver(ctx, outbox.Delivery{Handler: outbox.HandlerName(d.Name), Message: m, Attempt: 1, Charged: 1})
	trial := Trial{Destination: d.Name, MessageID: m.ID, Delivered: err == nil, Duration: time.Since(now).Seconds(), Freshness: mediator.Immediate}
	if err != nil {
		trial.Class, trial.Error = outbox.Failed, err.Error()
		if failure := (*outbox.Failure)(nil); errors.As(err, &failure) {
			trial.Class, trial.Status, trial.Excerpt = failure.Class, failure.Status, failure.Excerpt
		}
	}
	return trial, nil
}
