package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
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

// Appliance is everything that works on one data folder. It holds the folder's lock until Close.
type Appliance struct {
	options Options
	logger  *slog.Logger

	locks        []*store.Lock
	store        *store.Store
	marks        *marks // nil in a data folder that lies beside nothing
	whole        *whole // the same
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
