// Package metrics publishes the indicators of delivery (P24, P30) as OpenTelemetry metrics, at /metrics in the form that Prometheus
// reads. They come from counts that the dispatcher keeps; nothing counts rows.
//
// The store's availability is a gauge and the outcomes of messages are a counter, so that an outage of the one is never taken for a failure of
// the other.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
)

// Config is what Metrics publish from. All fields are required.
type Config struct {
	// Dispatcher tells the backlog, and whether it can dispatch.
	Dispatcher interface {
		Backlog(ctx context.Context) (outbox.Backlog, error)
		Down() error
	}
	// Writer tells how many commands wait, and whether it has failed.
	Writer interface {
		Waiting() int
		Err() error
	}
	// Usage tells how much room the database takes, and how much it may, in bytes; a limit of 0 is none.
	Usage func() (used, limit int64)
	// Alerts calls each for every alert that is raised; handler is empty for what concerns the whole store.
	Alerts func(each func(alert, handler string))
}

// Metrics are the indicators of one store.
type Metrics struct {
	registry *prometheus.Registry
	provider *sdk.MeterProvider
	outcomes metric.Int64Counter
	duration metric.Float64Histogram
}

// durations are the bounds of the histogram, in seconds: from a handler inside the process to a webhook at its time-out.
var durations = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60}

// New prepares metrics that Observe can be told of from the beginning. Publish completes them.
func New() (*Metrics, error) {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	m.provider = sdk.NewMeterProvider(sdk.WithReader(reader))
	meter := m.provider.Meter(scope)
	m.outcomes, err = meter.Int64Counter("outbox.outcomes", metric.WithDescription("attempts that ended, by what became of the delivery and how the attempt ended"))
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	m.duration, err = meter.Float64Histogram("outbox.dispatch.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(durations...),
		metric.WithDescription("how long attempts took"))
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	return m, nil
}

const scope = "github.com/posthorn/posthorn"

// Observe takes a settled attempt into the counts; it is what outbox.Config.Measure wants.
func (m *Metrics) Observe(o outbox.Outcome) {
	handler := attribute.String("handler", string(o.Handler))
	m.outcomes.Add(context.Background(), 1, metric.WithAttributes(handler, attribute.String("result", string(o.Result)), attribute.String("class", string(o.Class))))
	if o.Duration > 0 {
		m.duration.Record(context.Background(), o.Duration.Seconds(), metric.WithAttributes(handler, attribute.String("result", string(o.Result))))
	}
}

// instruments are what a scrape reads.
type instruments struct {
	up, waiting, used, budget   metric.Int64ObservableGauge
	alerts                      metric.Int64ObservableGauge
	pending, processing, failed metric.Int64ObservableGauge
	attempts, dispatched, stale metric.Int64ObservableCounter
	oldest, success             metric.Float64ObservableGauge
}

// Publish adds the indicators that are read when somebody asks.
func (m *Metrics) Publish(config Config) error {
	meter := m.provider.Meter(scope)
	var in instruments
	var errs []error
	var all []metric.Observable
	gauge := func(into *metric.Int64ObservableGauge, name, unit, description string) {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		*into, errs, all = g, append(errs, err), append(all, g)
	}
	counter := func(into *metric.Int64ObservableCounter, name, description string) {
		c, err := meter.Int64ObservableCounter(name, metric.WithDescription(description))
		*into, errs, all = c, append(errs, err), append(all, c)
	}
	part := func(into *metric.Float64ObservableGauge, name, unit, description string) {
		g, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		*into, errs, all = g, append(errs, err), append(all, g)
	}
	gauge(&in.up, "outbox.store.up", "", "1: the store can be used; 0: it cannot, and no message is touched")
	gauge(&in.waiting, "outbox.writer.waiting", "", "commands that wait to be started")
	gauge(&in.used, "outbox.store.used", "By", "what the database holds, without free pages and write-ahead log")
	gauge(&in.budget, "outbox.store.budget", "By", "what it may hold before dispatched messages go before their age")
	gauge(&in.pending, "outbox.pending", "", "deliveries that wait; those with held=true belong to a lane that does not flow")
	gauge(&in.processing, "outbox.processing", "", "deliveries that are claimed")
	gauge(&in.failed, "outbox.failed", "", "dead letters now")
	gauge(&in.alerts, "posthorn.alerts", "", "1 for each alert that is raised: the setting that is its threshold, and the handler, if it is one's")
	counter(&in.attempts, "outbox.attempts", "attempts that were started")
	counter(&in.dispatched, "outbox.dispatched", "deliveries that were accepted")
	counter(&in.stale, "outbox.stale", "outcomes that came after their lease was lost")
	part(&in.oldest, "outbox.oldest.pending.age", "s", "how long the oldest pending delivery has been due")
	part(&in.success, "outbox.success", "1", "delivered of the attempts that ended in the window")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error { return in.observe(ctx, o, config) }, all...)
	if err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	return nil
}

func (in *instruments) observe(ctx context.Context, o metric.Observer, config Config) error {
	up := int64(1)
	if config.Writer.Err() != nil || config.Dispatcher.Down() != nil {
		up = 0
	}
	o.ObserveInt64(in.up, up)
	o.ObserveInt64(in.waiting, int64(config.Writer.Waiting()))
	used, limit := config.Usage()
	o.ObserveInt64(in.used, used)
	if limit > 0 {
		o.ObserveInt64(in.budget, limit)
	}
	config.Alerts(func(alert, handler string) {
		o.ObserveInt64(in.alerts, 1, metric.WithAttributes(attribute.String("alert", alert), attribute.String("handler", handler)))
	})
	backlog, err := config.Dispatcher.Backlog(ctx)
	if err != nil {
		return fmt.Errorf("read backlog: %w", err) // what stands above is published all the same
	}
	for _, lane := range backlog.Lanes {
		handler := attribute.String("handler", string(lane.Handler))
		of := metric.WithAttributes(handler)
		o.ObserveInt64(in.pending, lane.Pending-lane.Held, metric.WithAttributes(handler, attribute.Bool("held", false)))
		o.ObserveInt64(in.pending, lane.Held, metric.WithAttributes(handler, attribute.Bool("held", true)))
		o.ObserveInt64(in.processing, lane.Processing, of)
		o.ObserveInt64(in.failed, lane.Failed, of)
		o.ObserveInt64(in.attempts, lane.Attempts, of)
		o.ObserveInt64(in.dispatched, lane.Dispatched, of)
		o.ObserveInt64(in.stale, lane.Stale, of)
		o.ObserveFloat64(in.oldest, lane.OldestPending.Seconds(), of)
		for window, ratio := range map[string]*float64{"5m": lane.Success5m, "1h": lane.Success1h} {
			if ratio != nil {
				o.ObserveFloat64(in.success, *ratio, metric.WithAttributes(handler, attribute.String("window", window)))
			}
		}
	}
	return nil
}

// Handler answers a scrape. It asks for a viewer of the main tenant: the lanes of every tenant are in it. Others are answered by refuse.
func (m *Metrics) Handler(refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	// A store that cannot be read must not hide that it cannot.
	publish := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, err := access.Require(r.Context(), access.Viewer)
		if err == nil && by.Tenant != outbox.MainTenant {
			err = fmt.Errorf("%w: metrics are of every tenant, and for the main one", access.ErrForbidden)
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		publish.ServeHTTP(w, r)
	})
}

// Close ends publishing.
func (m *Metrics) Close(ctx context.Context) error {
	if err := m.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("end metrics: %w", err)
	}
	return nil
}
