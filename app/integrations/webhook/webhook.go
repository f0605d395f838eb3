package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/outbox/mutant"
)

// Webhook delivers to one target. It is safe for concurrent use. Close it when its registration ends.
type Webhook struct {
	config    Config
	signers   []signer
	transport *http.Transport
}

// New returns a webhook for a valid registration. It connects to nothing yet.
func New(config Config) (*Webhook, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("register webhook: %w", err)
	}
	config = config.withDefaults()
	list, err := signers(config.Secrets)
	if err != nil {
		return nil, fmt.Errorf("register webhook: %w", err)
	}
	return &Webhook{config: config, signers: list, transport: transport(config)}, nil
}

// Close closes the connections that no attempt uses; those in use are closed after their attempt.
func (w *Webhook) Close() { w.transport.CloseIdleConnections() }

// Deliver makes one attempt: nil when the target accepted the message, else a *outbox.Failure, or an error without a class when ctx was
// cancelled. It is an outbox.Outside handler; its target suppresses repeats by webhook-id.
func (w *Webhook) Deliver(parent context.Context, d outbox.Delivery) error {
	ctx, cancel := context.WithTimeout(parent, w.config.Timeout)
	defer cancel()
	now := w.config.Now()
	came := &progress{}
	request, err := w.request(httptrace.WithClientTrace(ctx, came.trace()), d, now)
	if err != nil {
		return &outbox.Failure{Class: outbox.Rejected, Err: err}
	}
	// The transport itself, without http.Client: nothing follows redirects or keeps cookies, and no error repeats the URL.
	response, err := w.transport.RoundTrip(request)
	if err != nil {
		return failureOfError(parent, ctx, came, err)
	}
	excerpt := w.finish(response, cancel)
	if classOf(response.StatusCode, false) == outbox.Delivered || mutant.AnyAnswerDelivers {
		return nil
	}
	return failureOfStatus(response.StatusCode, response.Header, excerpt, now, w.config.RetryAfterCap)
}

// finish reads an answer's body, no further than its bounds, and returns its beginning. How the body ends changes nothing: the head
// has decided.
func (w *Webhook) finish(response *http.Response, cancel context.CancelFunc) string {
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return "" // its body is the bare connection
	}
	late := time.AfterFunc(bodyTime, cancel)
	defer late.Stop()
	begin := make([]byte, excerptBytes)
	n, err := io.ReadFull(response.Body, begin)
	if err == nil {
		_, _ = io.CopyN(io.Discard, response.Body, bodyBytes-excerptBytes)
	}
	return plain(string(begin[:n]), excerptBytes)
}
