package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/integrations/notices"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/live"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/metrics"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/app/upkeep"
	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// The names in a data folder.
const (
	DatabaseName = "posthorn.db"
	KeyName      = "posthorn.key"
	FilesName    = "files"
	ReserveName  = "posthorn.reserve"
)

// Options say what appliance to open.
type Options struct {
	Build Build
	// DataDir is the data folder; it is made when there is none. Required, unless DB is given.
	DataDir string
	// DB, unless empty, is a database that belongs to another program: messages are in it, everything else is in the data folder. Without
	// it the data folder says whether it lies beside one.
	DB string
	// AcceptLostTail: the database may be behind its mark, as after a restore.
	AcceptLostTail bool
	// Config is what the operator decided.
	Config Config
	// NoDispatch leaves deliveries to another start: for a single command.
	NoDispatch bool
	// LockWait is how long to wait for another process that holds the folder.
	LockWait time.Duration
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Appliance is everything that works on one data folder. It holds the folder's lock until Close.
type Appliance struct {
	options Options
	logger  *slog.Logger

	locks        []*store.Lock
	store        *store.Store
	marks        *marks // nil in a data folder that lies beside nothing
	lost         int64  // commits that had been lost at the start, and were given up
	declarations *declarations
	mediator     *mediator.Mediator
	tokens       *access.Tokens
	sessions     *session.Sessions
	hub          *realtime.Hub
	live         *live.Publisher
	dispatcher   *outbox.Dispatcher
	destinations *destinations.Service
	metrics      *metrics.Metrics
	keeper       *upkeep.Keeper
	reserve      *store.Reserve
	alerts       *alerts.Watch
	notifier     *alerts.Notifier // nil: nobody is named
	keeping      sync.WaitGroup
	stopKeeping  context.CancelFunc
	lending      *lending.Module // nil: off
	notices      *notices.Provider
	inbound      *inbound.Module
	handler      http.Handler
	url          atomic.Pointer[string] // where it listens; empty before it does

	closing sync.Once
	closed  error
}

// Open opens a data folder, and begins to deliver unless told otherwise. What it opened it closes when it fails.
func Open(ctx context.Context, options Options) (_ *Appliance, err error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if err := options.settle(); err != nil {
		return nil, err
	}
	a := &Appliance{options: options, logger: options.Logger}
	a.url.Store(new(string))
	defer func() {
		if err != nil {
			_ = a.Close(context.WithoutCancel(ctx))
		}
	}()
	// What a person can have written wrongly is read first: nothing is opened for it.
	set, err := loadRecords(records.OverlayDir(options.DataDir), options.Config.Settings)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(options.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	for _, step := range []func(context.Context, *records.Set) error{a.openStore, a.openAccess, a.openDelivery, a.openLending, a.openAlerts, a.openFaces} {
		if err := step(ctx, set); err != nil {
			return nil, err
		}
	}
	if options.NoDispatch {
		return a, a.dispatcher.Prepare(ctx)
	}
	if a.marks != nil {
		a.marks.start()
	}
	if err := a.dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	if err := a.destinations.ContinueBackfills(ctx); err != nil {
		return nil, err
	}
	a.keep()
	return a, nil
}

// openStore takes the lock, opens the database and brings the declarations into it.
func (a *Appliance) openStore(ctx context.Context, set *records.Set) (err error) {
	own := filepath.Join(a.options.DataDir, DatabaseName)
	steps, err := outbox.Steps()
	if err != nil {
		return err
	}
	opt := store.Options{Path: own, Schema: a.options.Build.Schema, SchemaVersion: outbox.SchemaVersion, Steps: steps, Create: true, AcceptLostTail: a.options.AcceptLostTail, Writer: writerConfig(set),
		Logger: a.logger}
	if a.options.DB != "" {
		if opt, err = a.guestOptions(opt); err != nil {
			return err
		}
		if err := a.takeLock(ctx, opt.Path); err != nil {
			return err
		}
	}
	if err := a.takeLock(ctx, own); err != nil {
		return err
	}
	if a.store, err = store.Open(ctx, opt); err != nil {
		return err
	}
	if err := a.arrive(ctx); err != nil {
		return err
	}
	a.declarations = &declarations{folder: records.OverlayDir(a.options.DataDir), overrides: a.options.Config.Settings, version: a.options.Build.Version,
		readers: a.readers(), writer: a.store.Writer, logger: a.logger}
	return a.declarations.declare(ctx, set)
}

func (a *Appliance) takeLock(ctx context.Context, path string) error {
	lock, err := store.TakeLock(ctx, path, a.options.LockWait)
	if err == nil {
		a.locks = append(a.locks, lock)
	}
	return err
}

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

// Handler is the HTTP API. A request is served for the principal in its context, or by its API token.
func (a *Appliance) Handler() http.Handler { return a.handler }

// Records returns the records in effect.
func (a *Appliance) Records() *records.Set { return a.declarations.Records() }

// Failed is closed when the store has failed for good. Close then tells why, and the process should end.
func (a *Appliance) Failed() <-chan struct{} { return a.store.Writer.Done() }

// Verify looks whether the database is still the file that was opened; when it is not, nothing more is acknowledged.
func (a *Appliance) Verify() {
	if err := a.store.Verify(); errors.Is(err, store.ErrReplaced) {
		a.store.Writer.Fail(err)
	} else if err != nil {
		a.logger.Warn("database cannot be looked at", "error", err)
	}
}

// Close ends delivery: attempts that run may finish until ctx ends. Then it closes the database and gives the folder free. Its error is the
// store's, when that has failed.
func (a *Appliance) Close(ctx context.Context) error {
	a.closing.Do(func() { a.closed = a.close(ctx) })
	return a.closed
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

func (a *Appliance) close(ctx context.Context) error {
	var errs []error
	a.drain(ctx)
	if a.live != nil {
		a.live.Stop()
	}
	a.endKeeping(ctx)
	if a.destinations != nil {
		a.destinations.Close()
	}
	if a.lending != nil {
		a.lending.Close()
		a.notices.Close()
	}
	if a.store != nil {
		failed := a.store.Writer.Err()
		// What was accepted is written, also when the drain took all of its time.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if a.marks != nil {
			a.marks.stop(bounded)
		}
		if err := a.store.Close(bounded); failed != nil {
			errs = append(errs, failed)
		} else {
			errs = append(errs, err)
		}
	}
	for _, lock := range a.locks {
		if err := lock.Release(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// closeTime bounds the last writes.
const closeTime = 10 * time.Second
