package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Indicators are the figures by which a backlog is watched (P30).
type Indicators struct {
	// Pending is what waits to be delivered, held deliveries included; Held is how much of it belongs to a held lane.
	Pending, Held int64
	// Processing is what is claimed now.
	Processing int64
	// Failed is the number of dead letters now.
	Failed int64
	// OldestPending is how long the oldest pending delivery has been due; zero when there is none.
	OldestPending time.Duration
	// Attempts, Dispatched and Stale count since the process started; Stale are settlings that came after their lease was lost.
	Attempts, Dispatched, Stale int64
	// DurationP50 and DurationP99 are of the latest thousand attempts.
	DurationP50, DurationP99 time.Duration
	// Success5m and Success1h are delivered ÷ ended attempts in the last five minutes and the last hour; nil when none ended.
	Success5m, Success1h *float64
}

// LaneBacklog is the backlog of one handler.
type LaneBacklog struct {
	Handler HandlerName
	// Hold says why the lane does not flow; empty when it does.
	Hold string
	// Slots and Busy are the lane's concurrency and how much of it is in use. Width is how much of it may be used now: less than Slots for
	// a while after the lane was stopped.
	Slots, Busy, Width int
	// Rate is the bound of its attempts a second; 0: none.
	Rate float64
	// Breaker tells whether its target can be reached.
	Breaker Breaker
	// HeldBytes are the payloads of what is held. Of a long queue it is an estimate, drawn from its oldest part.
	HeldBytes          int64
	HeldBytesEstimated bool
	Indicators
}

// Breaker is the state of a lane's breaker.
type Breaker struct {
	State BreakerState
	// OpenedAt and NextProbe are zero while it is closed; NextProbe also while a probe is out. A probe needs a delivery that is due.
	OpenedAt, NextProbe time.Time
}

// Backlog is the state of all delivery.
type Backlog struct {
	At    time.Time
	Total Indicators
	Lanes []LaneBacklog
}

// tally is what the dispatcher counts for a handler, whether or not it is registered.
type tally struct {
	pending, processing, failed int64
	attempts, dispatched, stale int64
	meter                       meter
}

func (d *Dispatcher) tally(name HandlerName) *tally {
	t := d.tallies[name]
	if t == nil {
		t = &tally{}
		d.tallies[name] = t
	}
	return t
}

// Unregistered is the hold of deliveries whose handler this program does not have.
const Unregistered = "no handler of this name is registered in the running program"

// NoRoute is the hold of deliveries that no route wanted when they were staged.
const NoRoute = "no route matched; kept until one does"

const selectOldest = `SELECT max(m.occurred_at, coalesce(m.deliver_at, 0)) FROM outbox_deliveries d INDEXED BY outbox_deliveries_open
JOIN outbox_messages m ON m.seq = d.seq WHERE d.completed_at IS NULL AND d.handler = ? AND d.state = 'pending' ORDER BY d.id LIMIT 1`

// Backlog reads the indicators, in total and by handler. They come from counts kept in memory; only the oldest delivery of each handler is
// looked up, so the cost does not grow with the backlog.
func (d *Dispatcher) Backlog(ctx context.Context) (Backlog, error) {
	now, mono := d.config.now(), time.Now()
	b := Backlog{At: now}
	var total meterTotals
	d.mu.Lock()
	names := slices.Sorted(maps.Keys(d.tallies))
	for name := range d.lanes {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t, l := d.tally(name), d.lanes[name]
		if l == nil && t.pending == 0 && t.processing == 0 && t.failed == 0 {
			continue
		}
		lane := LaneBacklog{Handler: name, Hold: Unregistered, Breaker: Breaker{State: BreakerClosed}}
		if name == Unrouted {
			lane.Hold = NoRoute
		}
		if l != nil {
			lane.Hold, lane.Slots, lane.Busy, lane.Rate = d.holdOf(l), l.handler.Concurrency, l.busy, l.handler.Rate
			lane.Width, _ = l.width(mono)
			lane.Breaker = l.breaker.show(mono, now)
		}
		lane.Pending, lane.Processing, lane.Failed = max(0, t.pending), max(0, t.processing), max(0, t.failed)
		lane.Attempts, lane.Dispatched, lane.Stale = t.attempts, t.dispatched, t.stale
		if lane.Hold != "" {
			lane.Held = lane.Pending
		}
		one := meterTotals{}
		one.add(&t.meter, now)
		total.add(&t.meter, now)
		one.fill(&lane.Indicators)
		b.Lanes = append(b.Lanes, lane)
	}
	d.mu.Unlock()
	for i := range b.Lanes {
		lane := &b.Lanes[i]
		if err := d.lookUp(ctx, lane, now); err != nil {
			return b, fmt.Errorf("read backlog of %s: %w", lane.Handler, err)
		}
		b.Total.add(lane.Indicators)
	}
	total.fill(&b.Total)
	return b, nil
}

// bytesSample bounds the deliveries whose bytes are looked at for one held lane.
const bytesSample = 2000

const selectHeldBytes = `SELECT count(*), coalesce(sum(octet_length(m.payload)), 0) FROM (
  SELECT seq FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ? AND state = 'pending' LIMIT ?) d
JOIN outbox_messages m ON m.seq = d.seq`

// lookUp reads of a lane's backlog what is not counted in memory: its oldest delivery and, if it is held, its bytes. Counting those as they
// are staged would cost every message a look at another table, for lanes that mostly flow.
func (d *Dispatcher) lookUp(ctx context.Context, lane *LaneBacklog, now time.Time) error {
	if lane.Pending == 0 {
		return nil
	}
	var since sql.NullInt64
	err := d.config.Read.DB.QueryRowContext(ctx, selectOldest, string(lane.Handler)).Scan(&since)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if since.Valid {
		lane.OldestPending = max(0, now.Sub(fromMicros(since.Int64)))
	}
	if lane.Hold == "" {
		return nil
	}
	var n int64
	if err := d.config.Read.DB.QueryRowContext(ctx, selectHeldBytes, string(lane.Handler), bytesSample).Scan(&n, &lane.HeldBytes); err != nil {
		return err
	}
	if n == bytesSample && lane.Pending > n {
		lane.HeldBytes, lane.HeldBytesEstimated = int64(float64(lane.HeldBytes)/float64(n)*float64(lane.Pending)), true
	}
	return nil
}

func (i *Indicators) add(o Indicators) {
	i.Pending += o.Pending
	i.Held += o.Held
	i.Processing += o.Processing
	i.Failed += o.Failed
	i.OldestPending = max(i.OldestPending, o.OldestPending)
	i.Attempts += o.Attempts
	i.Dispatched += o.Dispatched
	i.Stale += o.Stale
}

// meterTotals adds up meters.
type meterTotals struct {
	delivered5m, ended5m, delivered1h, ended1h int64
	durations                                  []time.Duration
}

func (t *meterTotals) add(m *meter, now time.Time) {
	delivered, ended := m.counts(now, 5*time.Minute)
	t.delivered5m, t.ended5m = t.delivered5m+delivered, t.ended5m+ended
	delivered, ended = m.counts(now, time.Hour)
	t.delivered1h, t.ended1h = t.delivered1h+delivered, t.ended1h+ended
	t.durations = append(t.durations, m.latest()...)
}

func (t *meterTotals) fill(i *Indicators) {
	i.Success5m, i.Success1h = ratio(t.delivered5m, t.ended5m), ratio(t.delivered1h, t.ended1h)
	slices.Sort(t.durations)
	i.DurationP50, i.DurationP99 = quantile(t.durations, 0.5), quantile(t.durations, 0.99)
}

func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	r := float64(part) / float64(whole)
	return &r
}
