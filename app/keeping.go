package app

import (
	"context"
	"path/filepath"

	"github.com/posthorn/posthorn/app/metrics"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/app/upkeep"
)

// prepareKeeping prepares what goes on beside delivery: upkeep, and the metrics that are read on demand.
func (a *Appliance) prepareKeeping() (err error) {
	a.reserve = store.NewReserve(store.ReserveConfig{Path: filepath.Join(a.options.DataDir, ReserveName), Size: a.Records().Bytes("disk-reserve"), Logger: a.logger})
	a.keeper, err = upkeep.New(upkeep.Config{Store: a.store, Dispatcher: a.dispatcher, Mediator: a.mediator, Records: a.Records,
		Guest: a.options.DB != "", Logger: a.logger})
	if err != nil {
		return err
	}
	if err := a.metrics.PublishLive(a.hub.Stats); err != nil {
		return err
	}
	return a.metrics.Publish(metrics.Config{Dispatcher: a.dispatcher, Writer: a.store.Writer, Usage: a.keeper.Usage, Alerts: a.eachAlert})
}

// keep keeps house in the background until the appliance is closed.
func (a *Appliance) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stopKeeping = cancel
	a.keeping.Go(func() { a.keeper.Run(ctx) })
	a.keeping.Go(func() { a.reserve.Run(ctx) })
	a.keeping.Go(func() { a.alerts.Run(ctx) })
	if a.notifier != nil {
		a.keeping.Go(func() { a.notifier.Run(ctx) })
	}
}

func (a *Appliance) endKeeping(ctx context.Context) {
	if a.stopKeeping != nil {
		a.stopKeeping()
		a.keeping.Wait()
	}
	if a.metrics != nil {
		if err := a.metrics.Close(context.WithoutCancel(ctx)); err != nil {
			a.logger.Warn("metrics not ended", "error", err)
		}
	}
}
