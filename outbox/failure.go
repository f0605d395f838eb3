package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class says how an attempt ended. The retry rules follow from it.
type Class string

const (
	// Delivered: the target accepted the message.
	Delivered Class = "delivered"
	// Throttled: the target asked to wait. Not charged.
	Throttled Class = "throttled"
	// Unreachable: the target could not be spoken to. Not charged: an outage is the destination's, a failure is the message's.
	Unreachable Class = "unreachable"
	// Failed: the target answered that it failed, or did not answer in time. Charged and retried.
	Failed Class = "failed"
	// Rejected: the target will never accept this message. Dead letter at once.
	Rejected Class = "rejected"
	// Gone: the target is no longer there. Dead letter at once; the lane is held, and with it its backlog, until it is resumed.
	Gone Class = "gone"
	// Snoozed: the handler asked for a later time. Not charged.
	Snoozed Class = "snoozed"
	// Interrupted: the process ended, or was told to, or its store could not be used, during the attempt.
	Interrupted Class = "interrupted"
	// Cancelled: an operator, or the deletion of the destination, ended the delivery.
	Cancelled Class = "cancelled"
	// Skipped: an operator passed over the delivery to free its ordering key.
	Skipped Class = "skipped"
	// Expired: the retry horizon passed.
	Expired Class = "expired"
	// Corrupt: the payload no longer matches its hash, so it was not sent.
	Corrupt Class = "corrupt"
)

// Failure is an attempt that did not deliver, with the evidence kept for investigation. A handler that returns any other
// error has failed with class Failed.
type Failure struct {
	Class Class
	// Err is the cause. Its text is stored and shown, so it must hold no secret and no payload.
	Err error
	// Status is the HTTP status, zero where there was none.
	Status int
	// RetryAfter is how long the target asked to wait; zero leaves it to the backoff.
	RetryAfter time.Duration
	// Excerpt is the beginning of what the target answered.
	Excerpt string
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return string(f.Class)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Permanent marks err as one that no retry can mend: the delivery becomes a dead letter at once.
func Permanent(err error) error { return &Failure{Class: Rejected, Err: err} }

// RetryAfter asks for the next attempt after d, because the target is throttling. The attempt is not charged.
func RetryAfter(d time.Duration, err error) error {
	return &Failure{Class: Throttled, Err: err, RetryAfter: d}
}

// Snooze asks for the next attempt after d, because it is too early. The attempt is not charged.
func Snooze(d time.Duration) error {
	return &Failure{Class: Snoozed, Err: fmt.Errorf("snoozed for %s", d), RetryAfter: d}
}

// failureOf gives every error of a handler its class. The cause of ctx tells an attempt cut short by the shutdown of
// the process from one that ran out of its time.
func failureOf(ctx context.Context, err error) *Failure {
	if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
		return &Failure{Class: Interrupted, Err: errStopping}
	}
	if f := (*Failure)(nil); errors.As(err, &f) {
		switch f.Class {
		case Throttled, Unreachable, Failed, Rejected, Gone, Snoozed, Corrupt:
			return f
		default: // the others are not a handler's to give
			given := *f
			given.Class = Failed
			return &given
		}
	}
	for _, outage := range []error{ErrStoreBusy, ErrStoreFull, ErrStoreIO, ErrQueueFull, ErrDeadline, ErrInDoubt, ErrCorrupt, ErrClosed} {
		if errors.Is(err, outage) {
			return &Failure{Class: Interrupted, Err: fmt.Errorf("the store could not be used: %w", err), RetryAfter: time.Second}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Class: Failed, Err: fmt.Errorf("time-out: %w", err)}
	}
	return &Failure{Class: Failed, Err: err}
}

// Failures lists the classes of what did not deliver: those that a dead letter can have.
func Failures() []Class {
	return []Class{Throttled, Unreachable, Failed, Rejected, Gone, Snoozed, Interrupted, Cancelled, Skipped, Expired, Corrupt}
}

// charged reports whether an attempt that ended so counts towards the retry bound.
func (c Class) charged() bool {
	switch c {
	case Throttled, Unreachable, Snoozed, Interrupted:
		return false
	default:
		return true
	}
}
