package destinations

import (
	"net/url"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// Kind is the integration that a destination uses.
type Kind string

// The kinds of destinations.
const (
	Webhook Kind = "webhook"
	File    Kind = "file"
	// Pull is a consumer that asks for its deliveries, since no request can reach it.
	Pull Kind = "pull"
)

// Order is what a dead letter means for the later messages of its ordering key.
type Order string

const (
	// Block holds them back until it is replayed or skipped. The default.
	Block Order = "block"
	// Skip lets them pass.
	Skip Order = "skip"
)

// State says whether a destination's lane flows.
type State string

const (
	// Flowing: what is due is delivered.
	Flowing State = "flowing"
	// Paused: somebody paused it.
	Paused State = "paused"
	// Disabled: it cannot be used; its hold says why.
	Disabled State = "disabled"
)

// The bounds of a destination.
const (
	MaxTypes        = 100
	MaxConcurrency  = 256
	MaxRate         = 100_000
	MinTimeout      = time.Second
	MaxTimeout      = 5 * time.Minute
	MaxDestinations = 1000
)

// Destination is the aggregate: where messages of some types go, and how.
type Destination struct {
	Name    string
	Tenant  outbox.TenantID
	Kind    Kind
	Types   []string
	Options Options
	// Sealed holds the signing secrets; nil for a kind that has none.
	Sealed    []byte
	CreatedAt time.Time
	CreatedBy string
	// Hold says why the lane does not flow; empty when it does.
	Hold string
}

// Options are what a destination was created with, as stored. A zero value follows the setting.
type Options struct {
	URL         string  `json:"url,omitempty"`
	Path        string  `json:"path,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
	Timeout     string  `json:"timeout,omitempty"`
	Order       Order   `json:"order,omitempty"`
}

// State follows from the hold.
func (d Destination) State() State {
	switch {
	case d.Hold == "":
		return Flowing
	case isPause(d.Hold), d.Hold == outbox.BackfillHold:
		return Paused
	default:
		return Disabled
	}
}

// View is a destination as callers see it.
type View struct {
	Name        string             `json:"name"`
	Kind        Kind               `json:"kind" enum:"webhook,file,pull"`
	URL         string             `json:"url,omitempty" doc:"Where a webhook posts to. A viewer sees its host only, since the rest is often a credential."`
	Path        string             `json:"path,omitempty" doc:"The file that a file destination appends to."`
	Types       []string           `json:"types" doc:"Patterns of the types that it receives."`
	Concurrency int                `json:"concurrency"`
	Rate        float64            `json:"rate" doc:"Attempts a second at the most; 0: no bound."`
	Timeout     string             `json:"timeout" doc:"The bound of one attempt: 15s. For a pull destination, how long a consumer holds a delivery."`
	Order       Order              `json:"order" enum:"block,skip" doc:"Whether a dead letter holds back the later messages of its ordering key."`
	State       State              `json:"state" enum:"flowing,paused,disabled"`
	Hold        string             `json:"hold,omitempty" doc:"Why nothing is delivered."`
	CreatedAt   time.Time          `json:"created_at"`
	CreatedBy   string             `json:"created_by"`
	Freshness   mediator.Freshness `json:"freshness"`
}

// Created is the answer to a creation.
type Created struct {
	View
	Secret string `json:"secret,omitempty" doc:"The signing secret, shown this once."`
}

// Deleted is the answer to a deletion.
type Deleted struct {
	Name string `json:"name"`
	// Cancelled counts the deliveries that were pending.
	Cancelled int64 `json:"cancelled" doc:"How many pending deliveries were settled as cancelled."`
}

// view shows a destination to a caller, with its defaults filled in.
func (d Destination) view(by access.Principal, defaults Defaults) View {
	bounds := d.bounds(defaults)
	v := View{
		Name: d.Name, Kind: d.Kind, URL: d.Options.URL, Path: d.Options.Path, Types: d.Types, Concurrency: bounds.concurrency, Rate: bounds.rate,
		Timeout: bounds.timeout.String(), Order: bounds.order, State: d.State(), Hold: d.Hold, CreatedAt: d.CreatedAt, CreatedBy: d.CreatedBy,
		Freshness: mediator.Immediate,
	}
	if !by.Role.Allows(access.Operator) {
		v.URL = hostOf(v.URL)
	}
	return v
}

// hostOf leaves of a URL what is no credential.
func hostOf(raw string) string {
	target, err := url.Parse(raw)
	if err != nil || target.Host == "" {
		return ""
	}
	if target.Path == "" || target.Path == "/" && target.RawQuery == "" {
		return target.Scheme + "://" + target.Host + target.Path
	}
	return target.Scheme + "://" + target.Host + "/…"
}

// Defaults are the settings that hold where a destination says nothing.
type Defaults struct {
	WebhookConcurrency int
	FileConcurrency    int
	Rate               float64
	Timeout            time.Duration
	RetryAfterCap      time.Duration
	SecretOverlap      time.Duration
	// PullConcurrency is how many deliveries consumers may hold, PullBatch how many one request may get, PullWait how long it may wait, PullCap how
	// long extensions may hold a delivery.
	PullConcurrency int
	PullBatch       int
	PullWait        time.Duration
	PullCap         time.Duration
}

type bounds struct {
	concurrency int
	rate        float64
	timeout     time.Duration
	order       Order
}

// bounds are the options in effect. A default beyond what a destination may ask for is brought to the nearest bound.
func (d Destination) bounds(defaults Defaults) bounds {
	b := bounds{concurrency: d.Options.Concurrency, rate: d.Options.Rate, order: d.Options.Order, timeout: defaults.Timeout}
	if b.rate == 0 {
		b.rate = defaults.Rate
	}
	if b.concurrency == 0 {
		switch d.Kind {
		case File:
			b.concurrency = defaults.FileConcurrency
		case Pull:
			b.concurrency = defaults.PullConcurrency
		default:
			b.concurrency = defaults.WebhookConcurrency
		}
	}
	if own, err := time.ParseDuration(d.Options.Timeout); err == nil {
		b.timeout = own
	}
	if b.order == "" {
		b.order = Block
	}
	b.concurrency = min(max(b.concurrency, 1), MaxConcurrency)
	b.timeout = min(max(b.timeout, MinTimeout), MaxTimeout)
	return b
}
