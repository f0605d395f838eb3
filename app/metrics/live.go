package metrics

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/posthorn/posthorn/realtime"
)

// PublishLive adds how live updates go: who listens, how far behind, and why streams ended or were refused.
func (m *Metrics) PublishLive(stats func() realtime.Stats) error {
	meter := m.provider.Meter(scope)
	var errs []error
	gauge := func(name, description string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	counter := func(name, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	connections := gauge("live.connections", "streams that are being served")
	queued := gauge("live.queued", "notifications that wait for slow clients, at most one for each topic of each stream")
	delivered := counter("live.delivered", "notifications handed to streams")
	coalesced := counter("live.coalesced", "notifications that a newer one of their topic made superfluous")
	closed := counter("live.closed", "streams that ended, by reason")
	refused := counter("live.refused", "streams that were not admitted, by reason")
	lag, err := meter.Float64ObservableGauge("live.lag", metric.WithUnit("s"), metric.WithDescription("the longest time for which a client has not taken what was written to it"))
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := stats()
		o.ObserveInt64(connections, int64(s.Connections))
		o.ObserveInt64(queued, int64(s.Queued))
		o.ObserveFloat64(lag, s.Lag.Seconds())
		o.ObserveInt64(delivered, int64(s.Delivered))
		o.ObserveInt64(coalesced, int64(s.Coalesced))
		for reason, n := range s.Closed {
			o.ObserveInt64(closed, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
		}
		for reason, n := range s.Refused {
			o.ObserveInt64(refused, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
		}
		return nil
	}, connections, queued, lag, delivered, coalesced, closed, refused)
	if err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	return nil
}
