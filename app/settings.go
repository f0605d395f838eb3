package app

import (
	"math"

	"github.com/posthorn/posthorn/app/cli"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// The product's bounds come from setting records; here they meet what they bound.

func retryPolicy(set *records.Set) outbox.RetryPolicy {
	return outbox.RetryPolicy{
		First:              set.Duration("retry-first"),
		Cap:                set.Duration("retry-cap"),
		JitterPercent:      max(1, uint64(math.Round(set.Ratio("retry-jitter")*100))), // 0 would be the library's default
		MaxAttempts:        set.Int("retry-attempts"),
		Horizon:            set.Duration("retry-horizon"),
		UnreachableHorizon: set.Duration("unreachable-horizon"),
		RetryAfterCap:      set.Duration("retry-after-cap"),
	}
}

func breakerPolicy(set *records.Set) outbox.BreakerPolicy {
	return outbox.BreakerPolicy{
		OpensAfter: set.Int("breaker-opens-after"),
		ProbeFirst: set.Duration("breaker-probe-first"),
		ProbeCap:   set.Duration("breaker-probe-cap"),
	}
}

func writerConfig(set *records.Set) outbox.WriterConfig {
	return outbox.WriterConfig{Queue: set.Int("writer-queue"), Deadline: set.Duration("command-deadline")}
}

// foreignPoll is how the commits of the program beside are noticed; in a file of one's own nobody else commits.
func (a *Appliance) foreignPoll(set *records.Set) outbox.ForeignPoll {
	if a.options.DB == "" {
		return outbox.ForeignPoll{}
	}
	return outbox.ForeignPoll{Busy: set.Duration("foreign-poll-busy"), Idle: set.Duration("foreign-poll-idle"),
		Share: set.Ratio("foreign-share"), Pause: set.Duration("foreign-pause"),
		Changed: newWALWatch(a.options.DB + "-wal").changed, Committed: a.store.Grown}
}

func destinationDefaults(set *records.Set) destinations.Defaults {
	return destinations.Defaults{
		WebhookConcurrency: set.Int("webhook-concurrency"),
		FileConcurrency:    set.Int("file-concurrency"),
		Rate:               set.Rate("destination-rate"),
		Timeout:            set.Duration("delivery-timeout"),
		RetryAfterCap:      set.Duration("retry-after-cap"),
		SecretOverlap:      set.Duration("secret-overlap"),
		PullConcurrency:    set.Int("pull-concurrency"),
		PullBatch:          set.Int("pull-batch"),
		PullWait:           set.Duration("pull-wait"),
		PullCap:            set.Duration("pull-lease-cap"),
	}
}

// readable lists what this program can read with the records of a data folder, handlers of modules that are off included: they can be
// switched on.
func readable(dataDir string) ([]cli.Read, error) {
	set, err := loadRecords(records.OverlayDir(dataDir), nil)
	if err != nil {
		return nil, err
	}
	list := []cli.Read{}
	for _, t := range lending.Readers().Declare(declared(set)) {
		list = append(list, cli.Read{Kind: string(t.Kind), Type: t.Type, SchemaVersion: t.SchemaVersion})
	}
	return list, nil
}

// declared lists the versions of the integration events that may be staged, which are also what this program can deliver.
func declared(set *records.Set) []outbox.TypeVersion {
	var types []outbox.TypeVersion
	for _, event := range set.IntegrationEvents() {
		for _, version := range event.Reads() {
			types = append(types, outbox.TypeVersion{Kind: outbox.IntegrationEvent, Type: event.ID, SchemaVersion: version})
		}
	}
	return types
}

// laneChanged has the screens of a destination follow what its lane does by itself: a breaker that opens, a target that is gone, a clock that is
// trusted again.
func (a *Appliance) laneChanged(name outbox.HandlerName) {
	if a.destinations != nil {
		a.live.Destination(a.destinations.TenantOf(name), string(name), "changed")
	}
}
