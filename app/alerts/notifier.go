package alerts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/posthorn/posthorn/outbox"
)

// NotifierConfig is what a Notifier needs. Send is required.
type NotifierConfig struct {
	// Send sends a message to the place that the operator named. An error has it tried again.
	Send func(ctx context.Context, attempt int, m outbox.Message) error
	// First is the delay before the second attempt; it doubles up to Cap.
	First, Cap time.Duration
	// Timeout bounds an attempt.
	Timeout time.Duration
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Notifier tells one receiver of alerts, in a lane of its own: one attempt at a time, until each change is accepted or a newer one of the same
// alert takes its place.
type Notifier struct {
	config NotifierConfig
	wake   chan struct{}

	mu      sync.Mutex
	order   []key // the oldest first
	changes map[key]change
	failure string // of the latest attempt; empty when it was accepted
}

type change struct {
	id    outbox.MessageID
	alert Alert
}

// NewNotifier returns a notifier. It sends while Run runs.
func NewNotifier(config NotifierConfig) *Notifier {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Notifier{config: config, wake: make(chan struct{}, 1), changes: map[key]change{}}
}

// Tell has the receiver told of an alert. It does not block.
func (n *Notifier) Tell(a Alert) {
	n.mu.Lock()
	if _, waits := n.changes[a.key()]; !waits {
		n.order = append(n.order, a.key())
	}
	n.changes[a.key()] = change{outbox.NewMessageID(), a}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Standing says how many changes wait to be told, and why the latest attempt failed.
func (n *Notifier) Standing() (waiting int, failure string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.order), n.failure
}

// Run sends until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		backoff, attempt := n.backoff(), 0
		for {
			next, ok := n.next()
			if !ok {
				break
			}
			attempt++
			err := n.send(ctx, attempt, next)
			if ctx.Err() != nil {
				return
			}
			n.settle(next, err)
			if err == nil {
				backoff, attempt = n.backoff(), 0
				continue
			}
			n.config.Logger.Warn("alert not told; trying again", "alert", next.alert.ID, "handler", next.alert.Handler, "attempt", attempt, "error", err)
			delay, _ := backoff.Next()
			timer := time.NewTimer(delay)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}

const jitterPercent = 20

func (n *Notifier) backoff() retry.Backoff {
	return retry.WithJitterPercent(jitterPercent, retry.WithCappedDuration(n.config.Cap, retry.NewExponential(n.config.First)))
}

func (n *Notifier) send(ctx context.Context, attempt int, c change) error {
	m, err := c.alert.message(c.id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	return n.config.Send(ctx, attempt, m)
}

func (n *Notifier) next() (change, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.order) == 0 {
		return change{}, false
	}
	return n.changes[n.order[0]], true
}

// settle takes what was accepted off the list; what failed goes to its end, so that one alert does not hold back the others.
func (n *Notifier) settle(sent change, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := sent.alert.key()
	n.order = n.order[1:]
	if err == nil {
		n.failure = ""
		if n.changes[k].id == sent.id {
			delete(n.changes, k)
			return
		}
	} else {
		n.failure = err.Error()
	}
	n.order = append(n.order, k)
}
