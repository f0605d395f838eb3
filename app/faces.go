package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/deliveries"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/live"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/messages"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/ui"
)

// openAccess prepares who may come in, and the live updates that end with their access.
func (a *Appliance) openAccess(_ context.Context, set *records.Set) (err error) {
	a.tokens = access.NewTokens(a.store.Writer, a.store.Read)
	a.sessions = session.New(session.Config{Writer: a.store.Writer, Read: a.store.Read, Tokens: a.tokens,
		Idle: set.Duration("session-idle"), Absolute: set.Duration("session-absolute")})
	if a.hub, err = live.NewHub(set, a.sessions, a.tokens, a.logger); err != nil {
		return err
	}
	a.live = live.New(a.hub, a.logger)
	return nil
}

// openFaces prepares what callers see.
func (a *Appliance) openFaces(context.Context, *records.Set) error {
	console, err := ui.New()
	if err != nil {
		return err
	}
	judge := emits.Judge{Records: a.Records, DataDir: a.options.DataDir}
	a.handler, err = api.New(api.Deps{
		Mediator: a.mediator, Documents: a.documents(judge), Messages: messages.New(a.mediator, judge, a.destinations.Lease),
		Deliveries: deliveries.New(a.mediator, a.dispatcher),
		Lending:    a.lending, Inbound: a.inbound,
		Alerts: a.alerts, Notifier: a.notifier, AlertDestination: a.options.Config.Alerts.Destination,
		Destinations: a.destinations, Tokens: a.tokens, Sessions: a.sessions, URL: func() string { return *a.url.Load() }, Records: a.Records, Reload: a.reload, Dispatcher: a.dispatcher,
		Incomplete: func() bool { return len(a.whole.Missing()) > 0 },
		Writer:     a.store.Writer, Intake: a.reserve.Low, Live: a.hub, Bound: live.NewRefreshes(func() int { return a.Records().Int("live-refreshes") }).Bound, Hosts: a.options.Config.Hosts, Version: a.options.Build.Version, Logger: a.logger,
		Routes: []api.Route{{Pattern: "/v1/events", Handler: live.Endpoint(a.hub, live.Authorizer{Lending: a.lending != nil, Address: live.AddressBehind(a.options.Config.proxies)})}, {Pattern: "GET /metrics", Handler: a.metrics.Handler(api.Refuse)},
			{Pattern: "/", Handler: console, Public: true}},
	})
	if err != nil {
		return fmt.Errorf("prepare the API: %w", err)
	}
	return nil
}

// reload reads the records again for an admin, who may be shown what is wrong with the operator's files.
func (a *Appliance) reload(ctx context.Context) error {
	err := a.declarations.Reload(ctx)
	problems := (records.Problems)(nil)
	if !errors.As(err, &problems) {
		return err
	}
	refusal := &mediator.Refusal{Kind: mediator.Invalid, Code: "invalid-records", Sentence: "The record files are wrong; those read before stay in effect.",
		Hint: "posthorn records check says the same; mend the files and try again."}
	for _, p := range problems[:min(len(problems), 20)] {
		at := p.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		refusal.At = append(refusal.At, mediator.Violation{Path: at, Message: p.Text})
	}
	return refusal
}

// documents is nil beside another program's database: that program has tables of its own.
func (a *Appliance) documents(judge emits.Judge) *documents.Module {
	if a.options.DB != "" {
		return nil
	}
	return documents.New(a.mediator, judge)
}
