package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/deliveries"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/messages"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/outbox"
)

// Deps is what the API serves. Fields are required unless they say otherwise.
type Deps struct {
	Mediator *mediator.Mediator
	// Documents; nil: there are none, as beside another program's database.
	Documents    *documents.Module
	Messages     *messages.Module
	Deliveries   *deliveries.Module
	Destinations *destinations.Service
	Tokens       *access.Tokens
	// Records gives the records in effect.
	Records func() *records.Set
	// Reload reads the record files again and answers once they are in effect; a *mediator.Refusal when one is wrong. Without it the route is
	// not served. Optional.
	Reload func(context.Context) error
	// Dispatcher delivers; see outbox.Dispatcher.
	Dispatcher Dispatcher
	// Writer tells by Err why it has stopped for good; see outbox.Writer.
	Writer interface{ Err() error }

	// Intake says why nothing new is staged at the moment; nil: it is. See store.Reserve. Optional.
	Intake func() error

	// Lending is the lending branch; nil: it is off, and its routes are not served.
	Lending *lending.Module
	// Inbound takes events from outside; nil: none.
	Inbound *inbound.Module
	// Alerts knows what is wrong; nil: nobody looks. Notifier tells of it, to AlertDestination; nil: nobody is named.
	Alerts           *alerts.Watch
	Notifier         *alerts.Notifier
	AlertDestination string
	// Sessions signs browsers in and out; nil: there are none.
	Sessions *session.Sessions
	// URL is the address under which this machine reaches the API. Defaults to none, so that links are paths.
	URL func() string
	// Routes are served beside the API's own: the live events, the session, the UI at "/". Optional.
	Routes []Route
	// Incomplete says that the outbox in another program's database lacks something of its contract. Defaults to no.
	Incomplete func() bool
	// Live are the live streams; nil: there are none.
	Live Connections
	// Bound, unless nil, wraps what a known caller is served; it answers by full whom it turns away.
	Bound func(next, full http.Handler) http.Handler
	// Hosts are the names, beside those of the loopback and the address that was dialled, by which callers may reach this API. Optional.
	Hosts []string
	// Version is the program's. Optional.
	Version string
	// Logger is told of each request, without its content, and of mistakes. Defaults to silence.
	Logger *slog.Logger
}

// Dispatcher is what the API asks of the one who delivers.
type Dispatcher interface {
	// Backlog reads the indicators of P30.
	Backlog(ctx context.Context) (outbox.Backlog, error)
	// Down says why nothing can be dispatched at the moment; nil: it can.
	Down() error
	// ClockTrusted says whether the clock can be right.
	ClockTrusted() bool
}

// Route is a handler served beside the API's own.
type Route struct {
	// Pattern is one of http.ServeMux: "GET /v1/events". That of the UI is "/", without a method, since the API answers for /v1/.
	Pattern string
	Handler http.Handler
	// Public: it is reached without a principal, and sees to access by itself. Otherwise access.From finds the caller in its context.
	Public bool
}

// server is the API.
type server struct {
	Deps
	mux  *http.ServeMux
	huma huma.API
	// methods lists what each path of the API takes, for 405.
	methods map[string][]string
	public  map[string]bool
	openAPI []byte
	bodies  bodies
}

// New assembles the API.
func New(deps Deps) (http.Handler, error) {
	if deps.Mediator == nil || deps.Messages == nil || deps.Deliveries == nil || deps.Destinations == nil || deps.Tokens == nil ||
		deps.Records == nil || deps.Dispatcher == nil || deps.Writer == nil {
		return nil, errors.New("new API: a required field of Deps is nil")
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.Intake == nil {
		deps.Intake = func() error { return nil }
	}
	if deps.Incomplete == nil {
		deps.Incomplete = func() bool { return false }
	}
	if deps.URL == nil {
		deps.URL = func() string { return "" }
	}
	s := &server{Deps: deps, mux: http.NewServeMux(), methods: map[string][]string{}, public: map[string]bool{}}
	s.huma = humago.New(s.mux, huma.Config{OpenAPI: s.describe()})
	if s.Documents != nil {
		s.documentRoutes()
	} else {
		s.noDocumentRoutes()
	}
	s.messageRoutes()
	s.deliveryRoutes()
	s.destinationRoutes()
	s.backfillRoutes()
	s.reshapeRoutes()
	s.pullRoutes()
	s.tokenRoutes()
	if s.Sessions != nil {
		s.sessionRoutes()
	}
	if s.Lending != nil {
		s.lendingRoutes()
	}
	if s.Inbound != nil {
		s.inboundRoutes()
	}
	s.recordRoutes()
	s.backlogRoutes()
	s.rollbackRoutes()
	if s.Alerts != nil {
		s.alertRoutes()
	}
	if s.Live != nil {
		s.connectionRoutes()
	}
	s.healthRoutes()
	entries := byHand()
	for _, r := range deps.Routes {
		if r.Pattern == eventsPath {
			r.Handler = s.forTenant(r.Handler)
		}
		s.mux.Handle(r.Pattern, r.Handler)
		if r.Public {
			s.public[r.Pattern] = true
		}
		if described := entries[r.Pattern]; described != nil {
			s.huma.OpenAPI().AddOperation(described)
		}
		if method, path, ok := strings.Cut(r.Pattern, " "); ok {
			s.methods[path] = append(s.methods[path], method)
		}
	}
	if err := s.finish(); err != nil {
		return nil, fmt.Errorf("new API: %w", err)
	}
	return s.wrap(), nil
}

// finish writes the OpenAPI document and answers what no route takes.
func (s *server) finish() (err error) {
	add[nothing, bytesOf](s, operation{method: http.MethodGet, path: "/openapi.json", summary: "This API, as OpenAPI 3.1", tag: "about"},
		func(x *exchange, _ nothing) (reply, error) {
			x.w.Header().Set("Content-Type", "application/openapi+json")
			return reply{http.StatusOK, s.openAPI}, nil
		})
	if s.openAPI, err = json.Marshal(s.huma.OpenAPI()); err != nil {
		return err
	}
	for path, methods := range s.methods {
		allow := allowed(methods)
		s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			(&Problem{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Detail: "This path does not take that method.",
				Hint: "It takes " + allow + ".", allow: allow}).write(w)
		})
	}
	if _, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: root, Host: "localhost"}); pattern == "" {
		s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { notFound.write(w) })
	} else {
		// The UI has the root; what looks like the API's is still answered like it.
		s.mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) { notFound.write(w) })
	}
	return nil
}
