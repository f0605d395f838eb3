package alerts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Config is what a Watch needs. Records and Backlog are required.
type Config struct {
	// Records gives the records in effect; a changed threshold holds from the next look on.
	Records func() *records.Set
	Backlog func(context.Context) (outbox.Backlog, error)
	// Down says why the store cannot be used; nil: it can.
	Down func() error
	// Room is how many bytes the database takes, and how many it may.
	Room func() (used, budget int64)
	// Lost is how many commits had been lost at the start, and were given up.
	Lost int64
	// Missing is how many objects of its contract the outbox lacks. Defaults to none.
	Missing func() int
	// Tenant says whose handler it is. Defaults to the main tenant.
	Tenant func(outbox.HandlerName) outbox.TenantID
	// Observe is told of each alert that was raised or cleared. It must not block.
	Observe func(Alert)
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Watch looks at what is measured, and knows what is wrong.
type Watch struct {
	config Config

	mu        sync.Mutex
	downSince time.Time
	known     map[key]*watched
}

// watched is what is known of one threshold for one handler.
type watched struct {
	breached time.Time // since when, while it is not raised
	calm     time.Time // since when, while it is raised
	raised   *Alert
}

// New returns a watch that has seen nothing yet.
func New(config Config) *Watch {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Tenant == nil {
		config.Tenant = func(outbox.HandlerName) outbox.TenantID { return outbox.MainTenant }
	}
	if config.Down == nil {
		config.Down = func() error { return nil }
	}
	if config.Room == nil {
		config.Room = func() (int64, int64) { return 0, 0 }
	}
	if config.Missing == nil {
		config.Missing = func() int { return 0 }
	}
	if config.Observe == nil {
		config.Observe = func(Alert) {}
	}
	return &Watch{config: config, known: map[key]*watched{}}
}

// Run looks again and again until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		every := time.NewTimer(w.config.Records().Duration("alert-interval"))
		select {
		case <-ctx.Done():
			every.Stop()
			return
		case <-every.C:
		}
		w.Look(ctx)
	}
}

// Look measures once, and raises and clears.
func (w *Watch) Look(ctx context.Context) {
	now := time.Now()
	reading := Reading{LostTail: w.config.Lost, Missing: w.config.Missing()}
	reading.RoomUsed, reading.RoomBudget = w.config.Room()
	down := w.config.Down()
	backlog, err := w.config.Backlog(ctx)
	if ctx.Err() != nil {
		return
	}
	if down == nil {
		down = err
	}
	reading.Backlog = backlog
	w.mu.Lock()
	if down == nil {
		w.downSince = time.Time{}
	} else if w.downSince.IsZero() {
		w.downSince = now
	}
	if !w.downSince.IsZero() {
		reading.StoreDown = max(now.Sub(w.downSince), time.Nanosecond)
	}
	// What cannot be read says nothing of the lanes: their alerts stay as they are.
	changes := w.judge(w.config.Records(), reading, now, err == nil)
	w.mu.Unlock()
	for _, alert := range changes {
		level := slog.LevelWarn
		if alert.State == Cleared {
			level = slog.LevelInfo
		}
		w.config.Logger.Log(ctx, level, "alert "+string(alert.State), "alert", alert.ID, "handler", alert.Handler, "value", alert.Value,
			"threshold", alert.Threshold, "runbooks", alert.Runbooks)
		w.config.Observe(alert)
	}
}

// judge compares a reading with the thresholds. The caller holds w.mu.
func (w *Watch) judge(set *records.Set, reading Reading, now time.Time, lanes bool) []Alert {
	var changes []Alert
	raiseAfter, clearAfter, clearBelow := set.Duration("alert-raise-after"), set.Duration("alert-clear-after"), set.Ratio("alert-clear-below")
	ruled := map[string]bool{}
	for _, rule := range Rules(set) {
		ruled[rule.Setting.ID] = true
		if !lanes && rule.Setting.Measures.OfLanes() {
			continue
		}
		values := reading.values(rule.Setting.Measures)
		for k := range w.known {
			if _, there := values[k.handler]; k.id == rule.Setting.ID && !there {
				values[k.handler] = 0 // its handler is gone, and so is what was wrong with it
			}
		}
		for handler, value := range values {
			k := key{rule.Setting.ID, handler}
			one := w.known[k]
			if one == nil {
				if value < rule.Threshold {
					continue
				}
				one = &watched{}
				w.known[k] = one
			}
			if change := w.step(one, rule, handler, value, now, raiseAfter, clearAfter, clearBelow); change != nil {
				changes = append(changes, *change)
			}
			if one.raised == nil && one.breached.IsZero() {
				delete(w.known, k)
			}
		}
	}
	// A threshold that the records no longer have is breached by nothing.
	for k, one := range w.known {
		if !ruled[k.id] {
			if one.raised != nil {
				changes = append(changes, one.clear(now))
			}
			delete(w.known, k)
		}
	}
	return sorted(changes)
}

// step moves one alert on, and returns it when it was raised or cleared.
func (w *Watch) step(one *watched, rule Rule, handler outbox.HandlerName, value float64, now time.Time, raiseAfter, clearAfter time.Duration, clearBelow float64) *Alert {
	if one.raised == nil {
		if value < rule.Threshold {
			one.breached = time.Time{}
			return nil
		}
		if one.breached.IsZero() {
			one.breached = now
		}
		if now.Sub(one.breached) < raiseAfter {
			return nil
		}
		one.raised = &Alert{ID: rule.Setting.ID, Title: rule.Setting.Title, Handler: handler, State: Raised, Unit: unitOf(rule.Setting.Unit), RaisedAt: now.UTC().Truncate(time.Microsecond),
			Value: value, Threshold: rule.Threshold, UseCases: rule.UseCases, Runbooks: rule.Runbooks, Tenant: outbox.MainTenant}
		if handler != "" {
			one.raised.Tenant = w.config.Tenant(handler)
		}
		one.breached, one.calm = time.Time{}, time.Time{}
		return one.raised
	}
	one.raised.Value, one.raised.Threshold = value, rule.Threshold
	if value >= rule.Threshold*clearBelow {
		one.calm = time.Time{}
		return nil
	}
	if one.calm.IsZero() {
		one.calm = now
	}
	if now.Sub(one.calm) < clearAfter {
		return nil
	}
	cleared := one.clear(now)
	return &cleared
}

func (o *watched) clear(now time.Time) Alert {
	cleared := *o.raised
	at := now.UTC().Truncate(time.Microsecond)
	cleared.State, cleared.ClearedAt = Cleared, &at
	o.raised, o.calm = nil, time.Time{}
	return cleared
}

// Raised lists what is wrong now.
func (w *Watch) Raised() []Alert {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []Alert{}
	for _, one := range w.known {
		if one.raised != nil {
			list = append(list, *one.raised)
		}
	}
	return sorted(list)
}
