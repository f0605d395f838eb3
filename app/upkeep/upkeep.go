// Package upkeep keeps house while the appliance runs: it removes what need not be kept, forgets old answers, gives free pages back to the
// file system, and watches the room that the database takes. Everything is done in short steps with pauses, so that no caller waits for it.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/audit"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

const (
	// interval is how often there is a round.
	interval = time.Minute
	// answerBatch is how many answers one command forgets, entryBatch how many entries of the audit.
	answerBatch = 500
	entryBatch  = 500
	// shrinkPages is how many pages go back in one step, shrinkSteps how many steps one round makes, with a pause between two.
	shrinkPages = 256
	shrinkSteps = 64
	shrinkPause = 50 * time.Millisecond
	// spare is what stays free in the file whatever happens, beside a quarter of what is used: the next rows need it.
	spare = 16 << 20
)

// Config is what a Keeper needs. The fields without a default are required.
type Config struct {
	Store      *store.Store
	Dispatcher *outbox.Dispatcher
	Mediator   *mediator.Mediator
	// Records gives the records in effect.
	Records func() *records.Set
	// Guest: the database belongs to another program, so that its size and its free pages are not this one's to keep.
	Guest bool
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Keeper keeps house.
type Keeper struct {
	config    Config
	retention *outbox.Retention
	used      atomic.Int64
}

// New prepares a keeper.
func New(config Config) (*Keeper, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{config: config}
	var err error
	k.retention, err = outbox.NewRetention(outbox.RetentionConfig{Writer: config.Store.Writer, Read: config.Store.Read, Dispatcher: config.Dispatcher,
		Rules: func() outbox.RetentionRules { return Rules(config.Records()) }, Full: k.full, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("prepare upkeep: %w", err)
	}
	return k, nil
}

// Rules are what the settings say of retention.
func Rules(set *records.Set) outbox.RetentionRules {
	return outbox.RetentionRules{
		Dispatched:      set.Duration("retention-dispatched"),
		DispatchedCount: int64(set.Int("retention-dispatched-count")),
		DeadLetters:     set.Duration("retention-dead-letters"),
		Inbox:           max(set.Duration("retry-horizon"), set.Duration("unreachable-horizon")),
		Replays:         set.Duration("retention-audit"),
	}
}

// Run makes rounds until ctx ends or the store has failed.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := k.Round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, outbox.ErrClosed) {
			k.config.Logger.Warn("upkeep waits", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.config.Store.Writer.Done():
			return
		case <-tick.C:
		}
	}
}

// Round does what is to be done now.
func (k *Keeper) Round(ctx context.Context) error {
	if err := k.look(ctx); err != nil {
		return err
	}
	purged, err := k.retention.Round(ctx)
	if err != nil {
		return err
	}
	if purged.Messages > 0 {
		k.config.Logger.Info("old messages removed", "messages", purged.Messages)
	}
	// A clock that jumped ahead lets answers expire too early as well.
	for n := int64(answerBatch); n == answerBatch && purged.Paused == 0; {
		if n, err = k.config.Mediator.ForgetAnswers(ctx, answerBatch); err != nil {
			return err
		}
	}
	for n := int64(entryBatch); n == entryBatch && purged.Paused == 0; {
		before := time.Now().Add(-k.config.Records().Duration("retention-audit"))
		if n, err = audit.Forget(ctx, k.config.Store.Writer, before, entryBatch); err != nil {
			return err
		}
	}
	return k.shrink(ctx)
}

// Usage tells how much room the database takes, as of the last round, and how much it may. The limit is no wall: beyond it dispatched
// messages go before their age. Without a limit it is 0.
func (k *Keeper) Usage() (used, limit int64) {
	if k.config.Guest {
		return k.used.Load(), 0
	}
	return k.used.Load(), k.config.Records().Bytes("size-budget")
}

// look reads the size; an alert compares it with the budget.
func (k *Keeper) look(ctx context.Context) error {
	size, err := k.config.Store.Size(ctx)
	if err != nil {
		return err
	}
	k.used.Store(size.Used)
	return nil
}

func (k *Keeper) full() bool {
	size, err := k.config.Store.Size(context.Background())
	if err != nil {
		return false
	}
	k.used.Store(size.Used)
	used, limit := k.Usage()
	return limit > 0 && used > limit
}

// shrink gives back what is free beyond what the next rows will need.
func (k *Keeper) shrink(ctx context.Context) error {
	if k.config.Guest {
		return nil
	}
	for range shrinkSteps {
		size, err := k.config.Store.Size(ctx)
		if err != nil {
			return err
		}
		if size.Free < max(spare, size.Used/4) {
			return nil
		}
		given, err := k.config.Store.Shrink(ctx, shrinkPages)
		if err != nil {
			return err
		}
		if given == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(shrinkPause):
		}
	}
	return nil
}
