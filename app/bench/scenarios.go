package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/outbox"
)

// Scenarios lists all there are.
func Scenarios(program string) []Scenario {
	list := []Scenario{
		{Name: "stage/raw/1", Unit: "/s", run: stageRaw(1)},
		{Name: "stage/raw/64", Unit: "/s", run: stageRaw(64)},
		{Name: "stage/raw/256", Unit: "/s", run: stageRaw(256)},
	}
	for _, callers := range []int{1, 8, 64, 256} {
		against := "stage/raw/1"
		if callers >= 64 {
			against = fmt.Sprintf("stage/raw/%d", callers)
		}
		list = append(list, Scenario{Name: fmt.Sprintf("stage/writer/%d", callers), Unit: "/s", Against: against, run: stageWriter(callers)})
	}
	list = append(list,
		Scenario{Name: "drain/1-handler", Unit: "deliveries/s", run: drain(1, 0)},
		Scenario{Name: "drain/3-handlers", Unit: "deliveries/s", Against: "drain/1-handler", run: drain(3, 0)},
		Scenario{Name: "drain/ordered", Unit: "deliveries/s", Against: "drain/1-handler", run: drain(1, 1000)},
		Scenario{Name: "steady/8", Unit: "/s", run: steady(8)},
		Scenario{Name: "steady/64", Unit: "/s", run: steady(64)},
		Scenario{Name: "latency/p50", Unit: "ms", run: latency(0.5)},
		Scenario{Name: "latency/p99", Unit: "ms", run: latency(0.99)},
		Scenario{Name: "webhook/client", Unit: "/s", run: bareClient(64)},
		Scenario{Name: "webhook/drain", Unit: "/s", Against: "webhook/client", run: webhookDrain(64)},
		Scenario{Name: "webhook/steady", Unit: "/s", Against: "webhook/client", run: webhookSteady(64)},
	)
	if program != "" {
		list = append(list, httpScenarios(program)...)
		list = append(append(list, liveScenarios(program)...), loadScenarios(program)...)
	}
	return list
}

func chosen(opt Options) ([]Scenario, error) {
	all := Scenarios(opt.Program)
	if len(opt.Only) == 0 {
		return all, nil
	}
	var some []Scenario
	for _, s := range all {
		if slices.ContainsFunc(opt.Only, func(begin string) bool { return strings.HasPrefix(s.Name, strings.TrimSuffix(begin, "*")) }) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil, errors.New("no scenario begins so")
	}
	return some, nil
}

func stageRaw(callers int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, err := openBed(ctx, dir, "bench")
		if err != nil {
			return 0, err
		}
		b.close() // the raw loop has the file for itself
		raw, err := b.raw(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { _ = raw.db.Close() }()
		return rate(callers, length, func() error { return raw.command(ctx) })
	}
}

func stageWriter(callers int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, err := openBed(ctx, dir, "bench")
		if err != nil {
			return 0, err
		}
		defer b.close()
		return rate(callers, length, func() error { return b.command(ctx) })
	}
}

// counting is a handler that does nothing but count.
func counting(name string, concurrency int, done *atomic.Int64) outbox.Handler {
	return outbox.Handler{
		Name: outbox.HandlerName(name), Routes: []outbox.Route{{Pattern: "*"}}, Concurrency: concurrency, RepeatKey: "none: it does nothing",
		Outside: func(context.Context, outbox.Delivery) error { done.Add(1); return nil },
	}
}

// perSecond sizes a fixed amount of work for a measurement of the given length.
func perSecond(length time.Duration, n int) int { return max(1, int(length.Seconds()*float64(n))) }

// drain empties a queue. Its messages share so many ordering keys; 0: they have none.
func drain(handlers int, keys int64) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		var names []string
		for i := range handlers {
			names = append(names, fmt.Sprintf("bench-%d", i))
		}
		b, err := openBed(ctx, dir, names...)
		if err != nil {
			return 0, err
		}
		b.keys = keys
		defer b.close()
		n := perSecond(length, 30000/handlers)
		if err := b.fill(ctx, n); err != nil {
			return 0, err
		}
		var done atomic.Int64
		var registered []outbox.Handler
		for _, name := range names {
			registered = append(registered, counting(name, 256, &done))
		}
		began := time.Now()
		d, err := b.dispatcher(ctx, registered...)
		if err != nil {
			return 0, err
		}
		if err := settled(ctx, d); err != nil {
			return 0, err
		}
		took := time.Since(began)
		if done.Load() < int64(n*handlers) {
			return 0, fmt.Errorf("%d of %d delivered", done.Load(), n*handlers)
		}
		return float64(n*handlers) / took.Seconds(), d.Stop(ctx)
	}
}

// settled waits until nothing is pending or processing.
func settled(ctx context.Context, d *outbox.Dispatcher) error {
	for ctx.Err() == nil {
		l, err := d.Backlog(ctx)
		if err != nil {
			return err
		}
		if l.Total.Attempts > 0 && l.Total.Pending == 0 && l.Total.Processing == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func steady(callers int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, err := openBed(ctx, dir)
		if err != nil {
			return 0, err
		}
		defer b.close()
		var done atomic.Int64
		d, err := b.dispatcher(ctx, counting("bench", 256, &done))
		if err != nil {
			return 0, err
		}
		return endToEnd(ctx, b, d, callers, length)
	}
}

// endToEnd stages for the length, waits until everything is settled, and returns messages a second over the whole time.
func endToEnd(ctx context.Context, b *bed, d *outbox.Dispatcher, callers int, length time.Duration) (float64, error) {
	began := time.Now()
	end := began.Add(length)
	var staged atomic.Int64
	if err := together(callers, func() error {
		for time.Now().Before(end) {
			if err := b.command(ctx); err != nil {
				return err
			}
			staged.Add(1)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	if err := settled(ctx, d); err != nil {
		return 0, err
	}
	return float64(staged.Load()) / time.Since(began).Seconds(), d.Stop(ctx)
}

// latency is the time from the acknowledged commit to the start of the handler, at a hundred messages a second.
func latency(quantile float64) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, err := openBed(ctx, dir)
		if err != nil {
			return 0, err
		}
		defer b.close()
		started := make(chan time.Time, 1)
		d, err := b.dispatcher(ctx, outbox.Handler{
			Name: "bench", Routes: []outbox.Route{{Pattern: "*"}}, RepeatKey: "none: it does nothing",
			Outside: func(context.Context, outbox.Delivery) error { started <- time.Now(); return nil },
		})
		if err != nil {
			return 0, err
		}
		var waits []time.Duration
		for range perSecond(length, 100) {
			if err := b.command(ctx); err != nil {
				return 0, err
			}
			committed := time.Now()
			waits = append(waits, max(0, (<-started).Sub(committed)))
			time.Sleep(10 * time.Millisecond)
		}
		slices.Sort(waits)
		return float64(waits[min(len(waits)-1, int(quantile*float64(len(waits))))].Microseconds()) / 1000, d.Stop(ctx)
	}
}

// receiver accepts everything.
func receiver(received *atomic.Int64) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		received.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
}

func hook(url string, flight int) (*webhook.Webhook, error) {
	return webhook.New(webhook.Config{
		URL: url, Secrets: []webhook.Secret{webhook.GenerateSecret()}, Concurrency: flight,
		Egress: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
}

func bareClient(flight int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, _ string, length time.Duration) (float64, error) {
		var received atomic.Int64
		server := receiver(&received)
		defer server.Close()
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: flight}}
		defer client.CloseIdleConnections()
		return rate(flight, length, func() error { return postOnce(ctx, client, server.URL) })
	}
}

func webhookLane(ctx context.Context, dir string, flight int) (*bed, outbox.Handler, func(), error) {
	var received atomic.Int64
	server := receiver(&received)
	w, err := hook(server.URL, flight)
	if err != nil {
		server.Close()
		return nil, outbox.Handler{}, nil, err
	}
	b, err := openBed(ctx, dir, "bench")
	if err != nil {
		server.Close()
		return nil, outbox.Handler{}, nil, err
	}
	var once sync.Once
	end := func() { once.Do(func() { w.Close(); server.Close(); b.close() }) }
	return b, outbox.Handler{
		Name: "bench", Routes: []outbox.Route{{Pattern: "*"}}, RepeatKey: "webhook-id", Concurrency: flight, Outside: w.Deliver,
	}, end, nil
}

func webhookDrain(flight int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, handler, end, err := webhookLane(ctx, dir, flight)
		if err != nil {
			return 0, err
		}
		defer end()
		n := perSecond(length, 10000)
		if err := b.fill(ctx, n); err != nil {
			return 0, err
		}
		began := time.Now()
		d, err := b.dispatcher(ctx, handler)
		if err != nil {
			return 0, err
		}
		if err := settled(ctx, d); err != nil {
			return 0, err
		}
		return float64(n) / time.Since(began).Seconds(), d.Stop(ctx)
	}
}

func webhookSteady(flight int) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		b, handler, end, err := webhookLane(ctx, dir, flight)
		if err != nil {
			return 0, err
		}
		defer end()
		d, err := b.dispatcher(ctx, handler)
		if err != nil {
			return 0, err
		}
		return endToEnd(ctx, b, d, flight, length)
	}
}
