package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/outbox"
)

// classOf says what a status means for the delivery; asked is a usable Retry-After. It is the whole table.
func classOf(status int, asked bool) outbox.Class {
	switch {
	case status >= 200 && status <= 299:
		return outbox.Delivered
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && asked:
		return outbox.Throttled
	case status == http.StatusGone:
		return outbox.Gone
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return outbox.Failed
	case status >= 300 && status <= 499:
		return outbox.Rejected
	default: // 5xx, and what is no status of HTTP: 101 unasked for, 000, 999
		return outbox.Failed
	}
}

// failureOfStatus makes a failure of an answer that is not 2xx.
func failureOfStatus(status int, header http.Header, excerpt string, now time.Time, limit time.Duration) *outbox.Failure {
	wait, asked := retryAfter(header, now, limit)
	failure := &outbox.Failure{Class: classOf(status, asked), Status: status, Excerpt: excerpt}
	if failure.Class == outbox.Throttled {
		failure.RetryAfter = wait
	}
	text := http.StatusText(status) // the target's own words stay in the excerpt
	if text == "" {
		text = "a status that HTTP does not know"
	}
	if status >= 300 && status <= 399 {
		text += "; redirects are not followed, register the final URL"
	}
	failure.Err = fmt.Errorf("target answered %d %s", status, text)
	return failure
}

// progress is how far an attempt came. Its fields are written by the transport's goroutines.
type progress struct {
	connected, answering atomic.Bool
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		// The transport may replace a kept connection that turned out closed before anything was written: a new start.
		GetConn:              func(string) { p.connected.Store(false) },
		GotConn:              func(httptrace.GotConnInfo) { p.connected.Store(true) },
		GotFirstResponseByte: func() { p.answering.Store(true) },
	}
}

// failureOfError makes a failure of an attempt that ended without the head of an answer. parent is the dispatcher's context, ctx
// the attempt's.
func failureOfError(parent, ctx context.Context, p *progress, err error) error {
	if errors.Is(parent.Err(), context.Canceled) {
		// Stopped from outside, as at shutdown: no outcome of the target's, so no class.
		return fmt.Errorf("deliver webhook: %w: %w", parent.Err(), context.Cause(parent))
	}
	var netError net.Error
	timedOut := ctx.Err() != nil || errors.As(err, &netError) && netError.Timeout()
	failure := &outbox.Failure{Class: outbox.Unreachable}
	sentence := "connection lost before an answer"
	switch {
	case errors.Is(err, egress.ErrRefused):
		// Not rejected, although it is permanent when the destination is created: a name that was public yesterday may be rebound for
		// an hour, and an operator may yet allow the range; a retry costs nothing. Not unreachable either: that is never charged and
		// would keep probing a forbidden address for its whole horizon.
		failure.Class, sentence = outbox.Failed, "target's address is not allowed"
	case !p.connected.Load() && timedOut:
		sentence = "time-out while connecting"
	case !p.connected.Load():
		sentence = "no connection"
	case timedOut:
		failure.Class, sentence = outbox.Failed, "time-out while waiting for the answer"
	case p.answering.Load():
		failure.Class, sentence = outbox.Failed, "the answer broke off or is not HTTP"
	}
	failure.Err = &cause{sentence: sentence, err: err}
	return failure
}

// cause is an error whose text may hold a target's bytes: they are made plain and cut.
type cause struct {
	sentence string
	err      error
}

func (c *cause) Error() string { return c.sentence + ": " + plain(c.err.Error(), errorBytes) }
func (c *cause) Unwrap() error { return c.err }
