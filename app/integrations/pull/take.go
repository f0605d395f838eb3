package pull

import (
	"context"
	"slices"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// Handed is a delivery in a consumer's hands.
type Handed struct {
	outbox.Delivery
	// Expires is when it must be settled or extended.
	Expires time.Time
}

// Take waits for deliveries, up to as many as asked for, and returns once there are some or the wait is over. What a request that broke off
// would have got goes to the next one. who is how others are told of the consumer.
func (q *Queue) Take(ctx context.Context, who string, most int, wait time.Duration) []Handed {
	a := &asker{who: who, want: most, woke: make(chan struct{}, 1)}
	q.mu.Lock()
	for len(q.ready) > 0 && a.want > 0 {
		h := q.ready[0]
		q.ready = q.ready[1:]
		q.give(h, a)
	}
	if len(a.got) == 0 {
		q.asking = append(q.asking, a)
		q.mu.Unlock()
		q.config.Wake()
		q.await(ctx, a, wait)
		q.mu.Lock()
		q.asking = slices.DeleteFunc(q.asking, func(other *asker) bool { return other == a })
	}
	defer q.mu.Unlock()
	if ctx.Err() != nil {
		for _, h := range a.got {
			if !h.ended {
				q.offer(h)
			}
		}
		return nil
	}
	handed := make([]Handed, 0, len(a.got))
	for _, h := range a.got {
		if !h.ended {
			handed = append(handed, Handed{h.delivery, h.expires})
		}
	}
	return handed
}

// await returns when the asker has got something and a little time has gathered more, or when nothing is to be had any more.
func (q *Queue) await(ctx context.Context, a *asker, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	gathering := false
	for {
		select {
		case <-a.woke:
			q.mu.Lock()
			full := a.want == 0
			q.mu.Unlock()
			if full {
				return
			}
			if !gathering {
				gathering = true
				timer.Reset(min(wait, gather))
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-q.closed:
			return
		}
	}
}

// Settle ends the attempt that is held under this fence, with a handler's answer: nil, or an error as outbox.Failure has it. It returns when
// the outcome is on the disk: ErrStale when it came too late, or the context's error while that is open still.
func (q *Queue) Settle(ctx context.Context, id outbox.DeliveryID, fence outbox.Fence, outcome error) error {
	q.mu.Lock()
	h := q.find(id, fence)
	if h == nil {
		q.mu.Unlock()
		return ErrStale
	}
	q.end(h, outcome)
	q.mu.Unlock()
	select {
	case stale := <-h.stored:
		if stale {
			return ErrStale
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Extend starts the lease anew, within the cap, and returns its end.
func (q *Queue) Extend(id outbox.DeliveryID, fence outbox.Fence) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.find(id, fence)
	if h == nil {
		return time.Time{}, ErrStale
	}
	left := min(q.config.Lease, time.Until(h.limit))
	h.expires = time.Now().Add(left).UTC().Truncate(time.Microsecond)
	q.arm(h, left, &outbox.Failure{Class: outbox.Failed, Err: errUnsettled})
	return h.expires, nil
}

// Lease tells which consumer holds a delivery under this fence, and until when; false: none does.
func (q *Queue) Lease(id outbox.DeliveryID, fence outbox.Fence) (who string, expires time.Time, held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.find(id, fence); h != nil {
		return h.by, h.expires, true
	}
	return "", time.Time{}, false
}

// find returns the attempt that a consumer holds under this fence; nil: none does. The caller holds q.mu.
func (q *Queue) find(id outbox.DeliveryID, fence outbox.Fence) *held {
	if h := q.held[id]; h != nil && h.delivery.Fence == fence && h.taken && !h.ended {
		return h
	}
	return nil
}
