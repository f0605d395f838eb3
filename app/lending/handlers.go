package lending

import (
	"context"

	"github.com/posthorn/posthorn/outbox"
)

// Handlers are the branch's own handlers of messages, each a lane with its own deliveries (P20). notices is the integration that tells
// members; its provider suppresses repeats by the message's id.
func (m *Module) Handlers(notices outbox.Outside) []outbox.Handler {
	readers := Readers()
	events := func(names ...string) (routes []outbox.Route) {
		for _, name := range names {
			routes = append(routes, outbox.Route{Kind: outbox.IntegrationEvent, Pattern: name})
		}
		return routes
	}
	return []outbox.Handler{
		{Name: "lending-statistics", Routes: events(eventBorrowed, eventReturned), InTx: m.count, Readers: readers},
		{Name: "lending-due-notice", Routes: events(eventBorrowed), InTx: m.remind, Readers: readers},
		{Name: "lending-journey", Routes: []outbox.Route{
			{Kind: kindStep, Pattern: stepHold}, {Kind: kindStep, Pattern: stepNotify}, {Kind: kindStep, Pattern: stepExpire},
		}, InTx: m.takeStep, Readers: readers},
		{Name: "lending-notices", Routes: []outbox.Route{{Kind: outbox.ProviderEffect, Pattern: effectNotice}}, Outside: notices,
			RepeatKey: "the message's id, as the provider's Idempotency-Key", Readers: readers},
	}
}

// count is the handler lending-statistics.
func (m *Module) count(ctx context.Context, tx *outbox.Tx, d outbox.Delivery) error {
	if d.Message.Type == eventReturned {
		return step(ctx, tx, d, "reaction:count-loans", m.countReturned)
	}
	return step(ctx, tx, d, "reaction:count-loans", m.countBorrowed)
}

// remind is the handler lending-due-notice.
func (m *Module) remind(ctx context.Context, tx *outbox.Tx, d outbox.Delivery) error {
	return step(ctx, tx, d, "reaction:send-due-notice", m.sendDueNotice)
}
