package app

import (
	"context"

	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// openAlerts prepares the watch over the delivery targets, and whoever is told of what it finds.
func (a *Appliance) openAlerts(_ context.Context, set *records.Set) error {
	if name := a.options.Config.Alerts.Destination; name != "" {
		a.notifier = alerts.NewNotifier(alerts.NotifierConfig{
			Send: func(ctx context.Context, attempt int, m outbox.Message) error {
				return a.destinations.SendDirect(ctx, outbox.MainTenant, name, attempt, m)
			},
			First: set.Duration("alert-retry-first"), Cap: set.Duration("alert-retry-cap"), Timeout: set.Duration("delivery-timeout"), Logger: a.logger,
		})
	}
	a.alerts = alerts.New(alerts.Config{
		Records: a.Records, Backlog: a.dispatcher.Backlog, Room: a.keeper.Usage, Lost: a.lost, Missing: func() int { return len(a.whole.Missing()) }, Tenant: a.destinations.TenantOf, Logger: a.logger,
		Down: func() error {
			if err := a.store.Writer.Err(); err != nil {
				return err
			}
			return a.dispatcher.Down()
		},
		Observe: func(alert alerts.Alert) {
			if a.notifier != nil {
				a.notifier.Tell(alert)
			}
		},
	})
	return nil
}

// eachAlert goes through the alerts that are raised now, for the metrics, which are prepared before the watch.
func (a *Appliance) eachAlert(each func(alert, handler string)) {
	if a.alerts == nil {
		return
	}
	for _, alert := range a.alerts.Raised() {
		each(alert.ID, string(alert.Handler))
	}
}
