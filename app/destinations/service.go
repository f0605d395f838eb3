package destinations

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Config is what a Service needs.
type Config struct {
	Mediator   *mediator.Mediator
	Writer     *outbox.Writer
	Read       *bun.DB
	Dispatcher *outbox.Dispatcher
	// Key seals the signing secrets.
	Key *Key
	// Egress is which addresses webhooks may reach, Files the folders, absolute, that file destinations may write to.
	Egress   egress.Policy
	Files    []string
	Defaults Defaults
	// Version is Posthorn's, for the User-Agent.
	Version string
	// Observe, unless nil, is told of each change after its commit: "created", "deleted", "paused", "resumed", "change",
	// "rotate-secret". It must not block.
	Observe func(tenant outbox.TenantID, name, change string)
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Service is the use cases of destinations. Its methods are safe for concurrent use; changes are made one at a time.
type Service struct {
	config   Config
	changing sync.Mutex
	trying   chan struct{}

	mu    sync.Mutex
	lanes map[string]lane

	stop  context.CancelFunc
	ctx   context.Context
	later sync.WaitGroup
}

// New returns the service. Restore brings the stored destinations up.
func New(config Config) *Service {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Observe == nil {
		config.Observe = func(outbox.TenantID, string, string) {}
	}
	s := &Service{config: config, lanes: map[string]lane{}, trying: make(chan struct{}, trials)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// EndLeases returns what consumers hold, without charge, and answers those who wait: the end of the process ends every lease.
func (s *Service) EndLeases() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if l.queue != nil {
			l.queue.Close()
		}
	}
}

// Close ends what the service does in the background and lets go of connections that no attempt uses. It is called after the dispatcher's stop.
func (s *Service) Close() {
	s.stop()
	s.later.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		l.end()
	}
	clear(s.lanes)
}

// The bounds of a page.
const (
	DefaultPage = 50
	MaxPage     = 200
)

type listing struct {
	after string
	limit int
}

// Validate bounds the page.
func (l listing) Validate() error {
	var v mediator.Violations
	if l.limit < 0 || l.limit > MaxPage {
		v.Add("/limit", "must be 1 to 200")
	}
	if len(l.after) > 64 {
		v.Add("/after", "must be the name that a page ended with")
	}
	return v.Refusal("invalid-page", "This page cannot be shown.", "")
}

// Authorize asks for a viewer.
func (listing) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

// Page is a part of the list.
type Page struct {
	Destinations []View
	// More says that others follow: ask for those after the last one's name.
	More bool
}

// List lists the destinations of the caller's tenant by name, after one name. A limit of 0 is 50.
func (s *Service) List(ctx context.Context, after string, limit int) (Page, error) {
	return mediator.Ask(ctx, s.config.Mediator, listing{after, limit}, func(ctx context.Context, db *bun.DB, by access.Principal, l listing) (Page, error) {
		if l.limit == 0 {
			l.limit = DefaultPage
		}
		found, err := list(ctx, db.DB, by.Tenant, l.after, l.limit+1)
		if err != nil {
			return Page{}, err
		}
		page := Page{More: len(found) > l.limit, Destinations: make([]View, 0, len(found))}
		for _, d := range found[:min(len(found), l.limit)] {
			page.Destinations = append(page.Destinations, d.view(by, s.config.Defaults))
		}
		return page, nil
	})
}

type get struct{ name }

// Authorize asks for a viewer.
func (get) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

// Get shows one destination of the caller's tenant.
func (s *Service) Get(ctx context.Context, destination string) (View, error) {
	return mediator.Ask(ctx, s.config.Mediator, get{name(destination)}, func(ctx context.Context, db *bun.DB, by access.Principal, g get) (View, error) {
		d, err := find(ctx, db.DB, by.Tenant, string(g.name))
		if err != nil {
			return View{}, err
		}
		return d.view(by, s.config.Defaults), nil
	})
}

// retryInterval is how often an unfinished deletion is looked at again.
const retryInterval = time.Second

// finishLater settles the rest of a deletion once its last attempts have ended. What is left when the process ends, the next start settles.
func (s *Service) finishLater(destination, reason string) {
	s.later.Go(func() {
		tick := time.NewTicker(retryInterval)
		defer tick.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
			}
			s.changing.Lock()
			_, settled, err := s.settle(s.ctx, destination, reason)
			s.changing.Unlock()
			if err != nil {
				s.config.Logger.Warn("deletion is not finished yet", "destination", destination, "error", err)
			}
			if settled {
				return
			}
		}
	})
}
