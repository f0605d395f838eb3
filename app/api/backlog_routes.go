package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/uptrace/bun"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// Indicators are the figures by which a backlog is watched (P30).
type Indicators struct {
	Pending          int64    `json:"pending" doc:"what waits to be delivered, held deliveries included"`
	Held             int64    `json:"held" doc:"how much of it belongs to a lane that does not flow"`
	Processing       int64    `json:"processing"`
	Failed           int64    `json:"failed" doc:"dead letters now"`
	OldestPendingAge *float64 `json:"oldest_pending_age_seconds" doc:"how long the oldest pending delivery has been due; null: none is pending"`
	Attempts         int64    `json:"attempts" doc:"since the start of the process"`
	Dispatched       int64    `json:"dispatched" doc:"since the start of the process"`
	Stale            int64    `json:"stale" doc:"settlings that came after their lease was lost, since the start of the process"`
	DurationP50      *float64 `json:"duration_p50_seconds" doc:"of the latest attempts; null: there was none"`
	DurationP99      *float64 `json:"duration_p99_seconds"`
	SuccessRate      *float64 `json:"success_rate" doc:"delivered ÷ ended attempts of the last five minutes; null: none ended"`
	SuccessRate1h    *float64 `json:"success_rate_1h"`
}

// lane is the backlog of one handler.
type lane struct {
	Handler outbox.HandlerName `json:"handler"`
	Hold    string             `json:"hold,omitempty" doc:"why the lane does not flow"`
	Runbook string             `json:"runbook,omitempty" doc:"the runbook that says what to do about the hold, where nobody wanted it"`
	Slots   int                `json:"slots" doc:"attempts that may run at once"`
	Busy    int                `json:"busy"`
	Width   int                `json:"width" doc:"how many slots may be used now: fewer than slots for a while after the lane was stopped"`
	Rate    float64            `json:"rate,omitempty" doc:"the bound of its attempts a second; left out: none"`
	Breaker breaker            `json:"breaker"`
	// HeldBytes is there while something is held.
	HeldBytes          *int64 `json:"held_bytes,omitempty" doc:"the size of the payloads that are held"`
	HeldBytesEstimated bool   `json:"held_bytes_estimated,omitempty" doc:"held_bytes is drawn from the oldest part of a long queue"`
	Indicators
}

// breaker tells whether a lane's target can be reached.
type breaker struct {
	State     outbox.BreakerState `json:"state" enum:"closed,open,probing" doc:"open: nothing but a probe goes out, the rest waits untouched; probing: one is out"`
	Since     *time.Time          `json:"since,omitempty" doc:"when it opened"`
	NextProbe *time.Time          `json:"next_probe,omitempty"`
}

// backlog is the state of all delivery that the caller may see.
type backlog struct {
	At        time.Time          `json:"at"`
	Total     Indicators         `json:"total"`
	Handlers  []lane             `json:"handlers"`
	Freshness mediator.Freshness `json:"freshness"`
}

// askBacklog is the query.
type askBacklog struct{}

// Validate finds nothing wrong.
func (askBacklog) Validate() error { return nil }

// Authorize asks for a viewer.
func (askBacklog) Authorize(by access.Principal) error { return by.Require(access.Viewer) }

func (s *server) backlogRoutes() {
	add[nothing, backlog](s, operation{
		method: http.MethodGet, path: "/v1/backlog", tag: "backlog", summary: "How much waits, fails and is delivered, in total and by handler", query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		answer, err := mediator.Ask(x.Context(), s.Mediator, askBacklog{}, func(ctx context.Context, db *bun.DB, by access.Principal, _ askBacklog) (backlog, error) {
			owners, err := ownersOf(ctx, db)
			if err != nil {
				return backlog{}, err
			}
			b, err := s.Dispatcher.Backlog(ctx)
			if err != nil {
				return backlog{}, err
			}
			return show(b, func(handler outbox.HandlerName) bool {
				owner, destination := owners[handler]
				return owner == by.Tenant || !destination && by.Tenant == outbox.MainTenant
			}), nil
		})
		return reply{http.StatusOK, answer}, err
	})
}

const selectOwners = `SELECT name, tenant FROM posthorn_destinations`

// ownersOf tells whose the destinations are. Handlers that are none are the program's own, and shown to the main tenant.
func ownersOf(ctx context.Context, db *bun.DB) (map[outbox.HandlerName]outbox.TenantID, error) {
	rows, err := db.DB.QueryContext(ctx, selectOwners)
	if err != nil {
		return nil, fmt.Errorf("read owners of destinations: %w", err)
	}
	defer func() { _ = rows.Close() }()
	owners := map[outbox.HandlerName]outbox.TenantID{}
	for rows.Next() {
		var name outbox.HandlerName
		var tenant outbox.TenantID
		if err := rows.Scan(&name, &tenant); err != nil {
			return nil, fmt.Errorf("read owners of destinations: %w", err)
		}
		owners[name] = tenant
	}
	return owners, rows.Err()
}

// runbooks say what to do about holds that nobody wanted.
var runbooks = map[string]string{outbox.Unregistered: "unclaimed-deliveries", outbox.ClockUntrusted: "clock-untrusted"}

// show leaves out the lanes that are not the caller's. Rates and durations of a part cannot be told from those of its lanes, so a total
// that leaves something out has none.
func show(b outbox.Backlog, mine func(outbox.HandlerName) bool) backlog {
	out := backlog{At: b.At, Handlers: []lane{}, Freshness: mediator.Immediate}
	var part outbox.Indicators
	for _, l := range b.Lanes {
		if !mine(l.Handler) {
			continue
		}
		out.Handlers = append(out.Handlers, laneOf(l))
		part.Pending += l.Pending
		part.Held += l.Held
		part.Processing += l.Processing
		part.Failed += l.Failed
		part.OldestPending = max(part.OldestPending, l.OldestPending)
		part.Attempts += l.Attempts
		part.Dispatched += l.Dispatched
		part.Stale += l.Stale
	}
	if len(out.Handlers) == len(b.Lanes) {
		part = b.Total
	}
	out.Total = indicatorsOf(part)
	return out
}

func laneOf(l outbox.LaneBacklog) lane {
	out := lane{Handler: l.Handler, Hold: l.Hold, Runbook: runbooks[l.Hold], Slots: l.Slots, Busy: l.Busy, Width: l.Width, Rate: l.Rate, Indicators: indicatorsOf(l.Indicators)}
	out.Breaker.State = l.Breaker.State
	if at := l.Breaker.OpenedAt.UTC(); !at.IsZero() {
		out.Breaker.Since = &at
	}
	if at := l.Breaker.NextProbe.UTC(); !at.IsZero() {
		out.Breaker.NextProbe = &at
	}
	if l.Held > 0 {
		out.HeldBytes, out.HeldBytesEstimated = &l.HeldBytes, l.HeldBytesEstimated
	}
	return out
}

func indicatorsOf(i outbox.Indicators) Indicators {
	out := Indicators{
		Pending: i.Pending, Held: i.Held, Processing: i.Processing, Failed: i.Failed, Attempts: i.Attempts, Dispatched: i.Dispatched, Stale: i.Stale,
		SuccessRate: i.Success5m, SuccessRate1h: i.Success1h,
	}
	if i.Pending > 0 {
		out.OldestPendingAge = seconds(i.OldestPending)
	}
	if i.DurationP99 > 0 {
		out.DurationP50, out.DurationP99 = seconds(i.DurationP50), seconds(i.DurationP99)
	}
	return out
}

func seconds(d time.Duration) *float64 {
	s := float64(d.Microseconds()) / 1e6
	return &s
}
