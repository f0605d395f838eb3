package destinations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Backfill is how far a destination has been given the messages of the past that its types match.
type Backfill struct {
	Destination string             `json:"destination"`
	State       string             `json:"state" enum:"running,finished" doc:"running: the destination is held until its last slice is in"`
	From        *time.Time         `json:"from" doc:"only messages that occurred at this time or later"`
	To          *time.Time         `json:"to" doc:"only messages that occurred before this time"`
	Added       int64              `json:"added" doc:"deliveries that it got so far"`
	Progress    float64            `json:"progress" minimum:"0" maximum:"1" doc:"how much of the messages was looked at"`
	StartedBy   string             `json:"started_by"`
	StartedAt   time.Time          `json:"started_at"`
	FinishedAt  *time.Time         `json:"finished_at"`
	Freshness   mediator.Freshness `json:"freshness"`
}

type backfill struct {
	name
	from, to time.Time
}

// Validate bounds the span.
func (b backfill) Validate() error {
	var v mediator.Violations
	if !b.from.IsZero() && !b.to.IsZero() && !b.from.Before(b.to) {
		v.Add("/to", "must be later than from")
	}
	return v.Refusal("bad-span", "No message can have occurred in this span.", "Leave both out for all that is kept.")
}

// Authorize asks for an operator.
func (backfill) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Backfill gives a destination the kept messages of the past that its types match and that it has no delivery of: all of them, or those that
// occurred from ≤ t < to. The destination is held until the last is in, so that what is ordered comes in order; the work goes on in the
// background, and after a restart.
func (s *Service) Backfill(ctx context.Context, destination string, from, to time.Time, receipt *mediator.Receipt) (mediator.Answer, error) {
	var receipts []mediator.Receipt
	if receipt != nil {
		receipts = append(receipts, *receipt)
	}
	began := false
	answer, err := mediator.SendOnce(ctx, s.config.Mediator, receipts, backfill{name(destination), from, to},
		func(ctx context.Context, work *mediator.UnitOfWork, b backfill) (Backfill, error) {
			d, err := find(ctx, work.Tx.Tx.Tx, work.By.Tenant, string(b.name))
			if err != nil {
				return Backfill{}, err
			}
			handler := outbox.HandlerName(d.Name)
			if err := s.config.Dispatcher.BeginBackfill(ctx, work.Tx, work.By.Actor, handler, b.from, b.to); err != nil {
				return Backfill{}, err
			}
			began = true
			return Backfill{Destination: d.Name, State: "running", From: given(b.from), To: given(b.to), StartedBy: work.By.Actor, StartedAt: work.Now,
				Freshness: mediator.Immediate}, access.Audit(ctx, work.Tx, work.By, "destination.backfill", d.Name, span(b.from, b.to))
		}, func(b Backfill) (mediator.Answer, error) {
			body, err := json.Marshal(b)
			return mediator.Answer{Status: 202, Body: body}, err
		})
	if errors.Is(err, outbox.ErrBackfillRuns) {
		err = &mediator.Refusal{Kind: mediator.Conflict, Code: "backfill-runs", Sentence: "A backfill of this destination goes on already.",
			Hint: "GET /v1/destinations/{name}/backfill tells how far it is."}
	}
	if err == nil && began {
		s.continueBackfill(outbox.HandlerName(destination))
	}
	return answer, err
}

func span(from, to time.Time) string {
	switch {
	case from.IsZero() && to.IsZero():
		return "all that is kept"
	case to.IsZero():
		return "from " + from.UTC().Format(time.RFC3339)
	case from.IsZero():
		return "to " + to.UTC().Format(time.RFC3339)
	}
	return "from " + from.UTC().Format(time.RFC3339) + " to " + to.UTC().Format(time.RFC3339)
}

// ContinueBackfills goes on with those that an earlier process did not finish. It is called once the dispatcher has started.
func (s *Service) ContinueBackfills(ctx context.Context) error {
	open, err := outbox.OpenBackfills(ctx, s.config.Read.DB)
	if err != nil {
		return err
	}
	for _, b := range open {
		s.continueBackfill(b.Handler)
	}
	return nil
}

func (s *Service) continueBackfill(handler outbox.HandlerName) {
	s.later.Go(func() {
		for s.ctx.Err() == nil {
			err := s.config.Dispatcher.ContinueBackfill(s.ctx, handler)
			if err == nil || errors.Is(err, outbox.ErrUnknownHandler) {
				return // the latter: its destination was deleted
			}
			if s.ctx.Err() == nil {
				s.config.Logger.Warn("backfill waits", "destination", string(handler), "error", err)
			}
			select {
			case <-s.ctx.Done():
			case <-s.config.Writer.Done():
				return
			case <-time.After(retryInterval):
			}
		}
	})
}

// BackfillOf tells how a destination's latest backfill stands.
func (s *Service) BackfillOf(ctx context.Context, destination string) (Backfill, error) {
	return mediator.Ask(ctx, s.config.Mediator, get{name(destination)}, func(ctx context.Context, db *bun.DB, by access.Principal, g get) (Backfill, error) {
		if _, err := find(ctx, db.DB, by.Tenant, string(g.name)); err != nil {
			return Backfill{}, err
		}
		found, err := outbox.FindBackfill(ctx, db.DB, outbox.HandlerName(g.name))
		if errors.Is(err, outbox.ErrNoBackfill) {
			return Backfill{}, &mediator.Refusal{Kind: mediator.Missing, Code: "no-backfill", Sentence: "This destination was never given its past.",
				Hint: "POST to the same path begins a backfill."}
		}
		if err != nil {
			return Backfill{}, fmt.Errorf("read backfill: %w", err)
		}
		b := Backfill{Destination: string(found.Handler), State: "running", From: given(found.From), To: given(found.To), Added: found.Added, Progress: 1,
			StartedBy: found.Actor, StartedAt: found.StartedAt, FinishedAt: given(found.FinishedAt), Freshness: mediator.Immediate}
		if b.FinishedAt != nil {
			b.State = "finished"
		} else if found.Last > 0 {
			b.Progress = float64(found.Next) / float64(found.Last)
		}
		return b, nil
	})
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
