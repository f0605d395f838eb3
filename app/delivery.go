package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/metrics"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// openDelivery prepares the dispatcher and brings up the destinations.
func (a *Appliance) openDelivery(ctx context.Context, set *records.Set) (err error) {
	a.mediator = mediator.New(mediator.Config{Writer: a.store.Writer, Read: a.store.Read, KeepAnswers: set.Duration("idempotency-horizon"), UseCases: useCases()})
	if a.metrics, err = metrics.New(); err != nil {
		return err
	}
	a.dispatcher, err = outbox.NewDispatcher(outbox.Config{Writer: a.store.Writer, Read: a.store.Read, Logger: a.logger, Retry: retryPolicy(set),
		LeaseGrace: set.Duration("lease-grace"), ClaimBatch: set.Int("claim-batch"), Poll: set.Duration("poll-interval"), Foreign: a.foreignPoll(set),
		Breaker: breakerPolicy(set), BuildDate: a.options.Build.date(), Observe: a.live.Deliveries, ObserveLane: a.laneChanged,
		Measure: a.metrics.Observe, Check: a.declarations.check})
	if err != nil {
		return fmt.Errorf("prepare delivery: %w", err)
	}
	if err := a.prepareKeeping(); err != nil {
		return err
	}
	key, err := a.openKey(ctx)
	if err != nil {
		return err
	}
	files := filepath.Join(a.options.DataDir, FilesName)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return fmt.Errorf("make folder for file destinations: %w", err)
	}
	a.destinations = destinations.New(destinations.Config{Mediator: a.mediator, Writer: a.store.Writer, Read: a.store.Read, Dispatcher: a.dispatcher,
		Key: key, Egress: a.options.Config.policy, Files: append([]string{files}, a.options.Config.Files.Allow...), Defaults: destinationDefaults(set),
		Version: a.options.Build.Version, Logger: a.logger, Observe: a.live.Destination})
	return a.destinations.Restore(ctx)
}

// openKey reads the key that seals secrets. A folder without one gets one, but not when secrets are sealed already: a new key would make
// them unreadable for good.
func (a *Appliance) openKey(ctx context.Context) (*destinations.Key, error) {
	path := filepath.Join(a.options.DataDir, KeyName)
	key, err := destinations.LoadKey(path)
	if !errors.Is(err, destinations.ErrNoKey) {
		if info, statErr := os.Stat(path); statErr == nil && info.Mode().Perm()&0o077 != 0 {
			a.logger.Warn("key file can be read by others", "path", path, "mode", info.Mode().Perm().String())
		}
		return key, err
	}
	sealed, sealedErr := destinations.Sealed(ctx, a.store.Read)
	if sealedErr != nil {
		return nil, sealedErr
	}
	if sealed > 0 {
		return nil, fmt.Errorf("open the signing secrets of %d destinations: %w", sealed, err)
	}
	return destinations.CreateKey(path)
}

// drain ends delivery: nothing more is claimed, and attempts that run may finish until ctx ends.
func (a *Appliance) drain(ctx context.Context) {
	if a.dispatcher == nil {
		return
	}
	if a.destinations != nil {
		a.destinations.EndLeases() // no consumer can be heard any more
	}
	// It fails only with the store, which tells of that itself.
	if err := a.dispatcher.Stop(ctx); err != nil {
		a.logger.Debug("delivery ended with the store", "error", err)
	}
}
