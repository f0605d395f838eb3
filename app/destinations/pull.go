package destinations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/pull"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// ErrUnsettled is answered to a consumer whose outcome is taken, but not on the disk yet. Nobody else gets the delivery meanwhile.
var ErrUnsettled = errors.New("the outcome is not stored yet")

// settleWait is how long a consumer waits for its outcome to be on the disk. That is a commit away, unless the store is in trouble.
const settleWait = 20 * time.Second

// ask is a consumer's request for deliveries.
type ask struct {
	name
	most    int
	wait    time.Duration
	service *Service
}

// Validate bounds the request.
func (a ask) Validate() error {
	var v mediator.Violations
	if most := a.service.config.Defaults.PullBatch; a.most < 1 || a.most > most {
		v.Add("/max", fmt.Sprintf("must be 1 to %d", most))
	}
	if most := a.service.config.Defaults.PullWait; a.wait < time.Second || a.wait > most {
		v.Add("/wait", fmt.Sprintf("must be 1s to %s", most))
	}
	return v.Refusal("invalid-pull", "Deliveries cannot be asked for like this.", "Leave max and wait out for the defaults.")
}

// Authorize asks for an operator: payloads are handed out whole, and what becomes of them is decided.
func (ask) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// Pulled is what a consumer got.
type Pulled struct {
	Deliveries []pull.Handed
	// Hold says why the destination does not flow; empty when it does.
	Hold string
}

// Pull hands deliveries of a pull destination of the caller's tenant to the caller, each under a lease, and waits for the first.
func (s *Service) Pull(ctx context.Context, destination string, most int, wait time.Duration) (Pulled, error) {
	d, queue, err := pulling(ctx, s, destination, ask{name(destination), most, wait, s})
	if err != nil {
		return Pulled{}, err
	}
	by, _ := access.From(ctx)
	return Pulled{Deliveries: queue.Take(ctx, by.Actor, most, wait), Hold: d.Hold}, nil
}

// Lease tells which consumer holds a delivery of a pull destination under this fence, and until when; false: none does.
func (s *Service) Lease(handler outbox.HandlerName, id outbox.DeliveryID, fence outbox.Fence) (who string, expires time.Time, held bool) {
	s.mu.Lock()
	queue := s.lanes[string(handler)].queue
	s.mu.Unlock()
	if queue == nil {
		return "", time.Time{}, false
	}
	return queue.Lease(id, fence)
}

// Result is what a consumer says of a delivery.
type Result string

// The results.
const (
	ResultDelivered Result = "delivered" // it is handled
	ResultFailed    Result = "failed"    // it is retried, and charged
	ResultThrottled Result = "throttled" // it is retried, and not charged
	ResultRejected  Result = "rejected"  // no retry can mend it: a dead letter
	ResultReleased  Result = "released"  // somebody else may have it, at once or after a time; not charged
	ResultExtended  Result = "extended"  // the consumer needs longer
)

// Settlement is a consumer's word on one delivery that it holds.
type Settlement struct {
	Delivery outbox.DeliveryID
	Fence    outbox.Fence
	Result   Result
	// Error is a line for whoever investigates, without secrets and payload.
	Error string
	// After delays the next attempt of what was failed, throttled or released; zero leaves it to the backoff.
	After time.Duration
}

const maxError = 1000

// maxAfter bounds a delay as an input; what is above the setting retry-after-cap counts as that.
const maxAfter = 24 * 366 * time.Hour

// settling is the command of a Settlement.
type settling struct {
	name
	Settlement
}

// Validate judges what needs no store.
func (c settling) Validate() error {
	var v mediator.Violations
	switch c.Result {
	case ResultDelivered, ResultExtended, ResultRejected:
		if c.After != 0 {
			v.Add("/retry_after", "belongs to failed, throttled and released")
		}
	case ResultFailed, ResultThrottled, ResultReleased:
		if c.After < 0 || c.After > maxAfter {
			v.Add("/retry_after", "must be a duration, such as 30s")
		}
	default:
		v.Add("/outcome", "must be delivered, failed, throttled, rejected, released or extended")
	}
	if len(c.Error) > maxError || !utf8.ValidString(c.Error) || strings.ContainsFunc(c.Error, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.Add("/error", fmt.Sprintf("must be at most %d bytes on one line", maxError))
	} else if c.Error != "" && (c.Result == ResultDelivered || c.Result == ResultExtended) {
		v.Add("/error", "belongs to what was not delivered")
	}
	return v.Refusal("invalid-settlement", "The delivery cannot be settled like this.", "")
}

// Authorize asks for an operator.
func (settling) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// answer is the settlement as a handler's answer.
func (c settling) answer() error {
	text := c.Error
	if text == "" {
		text = "the consumer answered " + string(c.Result)
	}
	failure := &outbox.Failure{Err: errors.New(text), RetryAfter: c.After}
	switch c.Result {
	case ResultFailed:
		failure.Class = outbox.Failed
	case ResultThrottled:
		failure.Class = outbox.Throttled
	case ResultRejected:
		failure.Class = outbox.Rejected
	case ResultReleased:
		failure.Class = outbox.Snoozed
	default:
		return nil
	}
	return failure
}

// Settle records a consumer's word, and returns when it is on the disk. For an extension it returns the new end of the lease. A delivery that
// is not held under this fence any more is left alone, refused and counted; but to say again that it was delivered is no mistake.
func (s *Service) Settle(ctx context.Context, destination string, in Settlement) (time.Time, error) {
	c := settling{name(destination), in}
	d, queue, err := pulling(ctx, s, destination, c)
	if err != nil {
		return time.Time{}, err
	}
	var expires time.Time
	if in.Result == ResultExtended {
		expires, err = queue.Extend(in.Delivery, in.Fence)
	} else {
		bounded, cancel := context.WithTimeout(ctx, settleWait)
		defer cancel()
		err = queue.Settle(bounded, in.Delivery, in.Fence, c.answer())
	}
	switch {
	case err == nil:
		return expires, nil
	case !errors.Is(err, pull.ErrStale):
		return expires, ErrUnsettled
	case in.Result == ResultDelivered:
		again, lookErr := s.dispatched(ctx, d, in)
		if again || lookErr != nil {
			return expires, lookErr
		}
	}
	s.config.Dispatcher.Late(outbox.HandlerName(d.Name))
	return expires, stale()
}

const selectDispatched = `SELECT count(*) FROM outbox_deliveries WHERE id = ? AND handler = ? AND tenant = ? AND fence = ? AND state = 'dispatched'`

// dispatched says whether a consumer only repeats itself, because it did not hear the answer.
func (s *Service) dispatched(ctx context.Context, d Destination, in Settlement) (yes bool, err error) {
	err = s.config.Read.DB.QueryRowContext(ctx, selectDispatched, int64(in.Delivery), d.Name, string(d.Tenant), int64(in.Fence)).Scan(&yes)
	if err != nil {
		return false, fmt.Errorf("look at delivery %d: %w", in.Delivery, err)
	}
	return yes, nil
}

// pulling admits a request and finds the queue that it is for.
func pulling[Q mediator.Query](ctx context.Context, s *Service, destination string, q Q) (Destination, *pull.Queue, error) {
	d, err := mediator.Ask(ctx, s.config.Mediator, q, func(ctx context.Context, db *bun.DB, by access.Principal, _ Q) (Destination, error) {
		return find(ctx, db.DB, by.Tenant, destination)
	})
	if err != nil {
		return d, nil, err
	}
	s.mu.Lock()
	l := s.lanes[d.Name]
	s.mu.Unlock()
	switch {
	case d.Kind != Pull:
		return d, nil, notPulled(d)
	case l.queue == nil:
		return d, nil, unknown() // it is being deleted
	}
	return d, l.queue, nil
}
