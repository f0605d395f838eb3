package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
	"github.com/uptrace/bun"
)

// RetentionRules say what is kept. A message goes whole, with its deliveries and their attempts, when each of its deliveries may go. A
// delivery that is pending or processing never may.
type RetentionRules struct {
	// Dispatched is the age, since its completion, at which a dispatched delivery may go.
	Dispatched time.Duration
	// DispatchedCount is how many of the latest messages are kept; a dispatched delivery of an older one may go whatever its age.
	DispatchedCount int64
	// DeadLetters is the age, since it was given up, at which a dead letter may go. Neither count nor Full touches one.
	DeadLetters time.Duration
	// Inbox is how long it is remembered that a message was handled once the message is gone: the longest retry horizon.
	Inbox time.Duration
	// Replays is the age at which the record of a replay may go, though never before the delivery that was replayed.
	Replays time.Duration
}

// DefaultRetention keeps dispatched messages for 7 days, the latest million at most, dead letters for 90 days, and the records of replays for a
// year.
var DefaultRetention = RetentionRules{Dispatched: 7 * 24 * time.Hour, DispatchedCount: 1_000_000, DeadLetters: 90 * 24 * time.Hour, Inbox: 90 * 24 * time.Hour,
	Replays: 365 * 24 * time.Hour}

// RetentionConfig is what a Retention needs.
type RetentionConfig struct {
	// Writer and Read are the store's. Required.
	Writer *Writer
	Read   *bun.DB
	// Dispatcher, unless nil, is the one whose counts follow the dead letters that are removed.
	Dispatcher *Dispatcher
	// Rules are asked for in each round. Defaults to DefaultRetention.
	Rules func() RetentionRules
	// Full says that the store has used up its room: as long as it does, dispatched deliveries may go whatever their age, the oldest first.
	// It is asked every few hundred messages. Defaults to never.
	Full func() bool
	// Logger defaults to none.
	Logger *slog.Logger
	// Now is the wall clock. Defaults to time.Now.
	Now func() time.Time
}

// Retention removes what need not be kept. It walks the messages in commit order with a cursor in memory, looks at them through the reader
// pool, and deletes in short commands with pauses in between, so that whoever stages does not feel it.
type Retention struct {
	config RetentionConfig

	round sync.Mutex // one at a time
	clock clockWatch
	head  int64 // behind what earlier rounds have removed, or found to be kept
	sweep int64 // goes round slowly, for what became removable behind the head
	audit int64 // goes round the records of replays
}

// NewRetention prepares a retention. Call Round now and then, or Run.
func NewRetention(config RetentionConfig) (*Retention, error) {
	if config.Writer == nil || config.Read == nil {
		return nil, errors.New("new retention: Writer and Read are required")
	}
	if config.Rules == nil {
		config.Rules = func() RetentionRules { return DefaultRetention }
	}
	if config.Full == nil {
		config.Full = func() bool { return false }
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Retention{config: config}, nil
}

// Purged is what a round did.
type Purged struct {
	// Messages that were removed, Remembered, the marks of handled messages that were forgotten, and Replays, the records of replays.
	Messages, Remembered, Replays int64
	// Paused is for how much more uptime nothing is removed, because the clock jumped ahead.
	Paused time.Duration
}

// sweepWindows is how many windows of old messages one round looks at again.
const sweepWindows = 20

// Run makes rounds until ctx ends.
func (r *Retention) Run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		purged, err := r.Round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.config.Logger.Warn("retention waits", "error", err)
		case purged.Messages > 0:
			r.config.Logger.Info("old messages removed", "messages", purged.Messages)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Round removes what the rules let go, and returns when there is no more of it or ctx ends.
func (r *Retention) Round(ctx context.Context) (Purged, error) {
	r.round.Lock()
	defer r.round.Unlock()
	var done Purged
	var err error
	if done.Paused, err = r.clock.look(ctx, r.config); err != nil || done.Paused > 0 {
		return done, err
	}
	rules := r.config.Rules()
	for {
		w, err := r.purgeWindow(ctx, rules, r.head, &done)
		if err != nil {
			return done, err
		}
		// What follows a message that is young is younger still, or will be looked at when its turn has come.
		if w.last == 0 || w.young && w.purged == 0 {
			break
		}
		r.head = w.last
	}
	for range sweepWindows {
		w, err := r.purgeWindow(ctx, rules, r.sweep, &done)
		if err != nil {
			return done, err
		}
		r.sweep = w.last
		if w.last == 0 || w.last >= r.head {
			r.sweep = 0
			break
		}
	}
	if done.Remembered, err = r.forget(ctx, r.clock.now().Add(-rules.Inbox)); err != nil {
		return done, err
	}
	done.Replays, err = r.forgetReplays(ctx, r.clock.now().Add(-rules.Replays))
	return done, err
}

// bounds are the rules as of one window.
type bounds struct{ dispatched, dead, beyond int64 }

func (r *Retention) bounds(ctx context.Context, rules RetentionRules) (bounds, error) {
	now := r.clock.now()
	b := bounds{dispatched: micros(now.Add(-rules.Dispatched)), dead: micros(now.Add(-rules.DeadLetters))}
	if r.config.Full() {
		b.dispatched = micros(now)
	}
	var last int64
	if err := r.config.Read.DB.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM outbox_messages`).Scan(&last); err != nil {
		return b, fmt.Errorf("find latest message: %w", err)
	}
	b.beyond = last - rules.DispatchedCount
	if mutant.DeadLettersPurged {
		b.dead = b.dispatched
	}
	return b, nil
}

const deleteRemembered = `DELETE FROM outbox_inbox WHERE (handler, tenant, message) IN
(SELECT handler, tenant, message FROM outbox_inbox INDEXED BY outbox_inbox_purged WHERE purged_at IS NOT NULL AND purged_at < ? ORDER BY purged_at LIMIT ?)`

// forget removes the marks of handled messages that have been gone for long enough.
func (r *Retention) forget(ctx context.Context, before time.Time) (forgotten int64, err error) {
	for {
		var n int64
		err := r.paced(ctx, func(ctx context.Context, tx *Tx) (err error) {
			n, err = execCount(ctx, tx, deleteRemembered, micros(before), purgeBatch)
			return err
		})
		if err != nil {
			return forgotten, fmt.Errorf("forget handled messages: %w", err)
		}
		forgotten += n
		if n < purgeBatch {
			return forgotten, nil
		}
	}
}

const (
	// They are written in the order of time, so the first young one is the end of the old.
	selectAuditWindow = `SELECT r.id, r.replayed_at < ?, EXISTS (SELECT 1 FROM outbox_deliveries d WHERE d.id = r.delivery) FROM outbox_replays r
WHERE r.id > ? ORDER BY r.id LIMIT ?`
	deleteReplays = `DELETE FROM outbox_replays WHERE id IN (SELECT value FROM json_each(?))`
)

// forgetReplays removes the records of replays that are old and whose deliveries are gone; a delivery never comes back. Those of old dead
// letters that are still kept are passed over, a bounded number in one round.
func (r *Retention) forgetReplays(ctx context.Context, before time.Time) (forgotten int64, err error) {
	for range sweepWindows {
		old, last, err := r.oldReplays(ctx, before)
		if err != nil {
			return forgotten, fmt.Errorf("find old records of replays: %w", err)
		}
		for len(old) > 0 {
			batch := old[:min(len(old), purgeBatch)]
			old = old[len(batch):]
			err := r.paced(ctx, func(ctx context.Context, tx *Tx) error {
				_, err := execCount(ctx, tx, deleteReplays, intList(batch))
				return err
			})
			if err != nil {
				return forgotten, fmt.Errorf("remove old records of replays: %w", err)
			}
			forgotten += int64(len(batch))
		}
		if r.audit = last; last == 0 {
			break
		}
	}
	return forgotten, nil
}

// oldReplays looks at a window of records behind the cursor; last is 0 when there is nothing old behind it.
func (r *Retention) oldReplays(ctx context.Context, before time.Time) (old []int64, last int64, err error) {
	rows, err := r.config.Read.DB.QueryContext(ctx, selectAuditWindow, micros(before), r.audit, purgeWindow)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var aged, kept bool
		if err := rows.Scan(&last, &aged, &kept); err != nil {
			return nil, 0, err
		}
		if !aged {
			return old, 0, rows.Err()
		}
		if !kept {
			old = append(old, last)
		}
	}
	return old, last, rows.Err()
}

// paced runs one command and rests for three times as long as it took, so that it takes no more than a quarter of the writer.
func (r *Retention) paced(ctx context.Context, fn Command) error {
	var took time.Duration
	err := r.config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return fn(ctx, tx)
	})
	if err != nil {
		return err
	}
	rest := time.NewTimer(max(2*time.Millisecond, 3*took))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rest.C:
		return nil
	}
}
