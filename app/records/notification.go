package records

// Notification is one live update: what the screen would lose by polling, what it costs, and how it recovers.
type Notification struct {
	Head                `yaml:",inline"`
	Topic               string    `yaml:"topic"`
	Query               string    `yaml:"query"` // the query whose output it says to read again
	Freshness           Freshness `yaml:"freshness"`
	Requirement         string    `yaml:"requirement"` // the user's decision that sets the target
	UpdateLatency       Span      `yaml:"update_latency"`
	Polling             string    `yaml:"polling"`       // what polling showed: interval, visible delay
	MeasuredCost        string    `yaml:"measured_cost"` // of polling and of the live update, as measured
	ExpectedConnections int       `yaml:"expected_connections"`
	Recovery            string    `yaml:"recovery"`
	Decision            Decision  `yaml:"decision"`
	PollInterval        Span      `yaml:"poll_interval"` // of a view that polls
	Transport           string    `yaml:"transport"`
	PlatformSupport     string    `yaml:"platform_support"` // what hosted platforms and proxies allow
}

// Freshness is what a query's output promises about its age.
type Freshness struct {
	Mode      FreshnessMode `yaml:"mode"`
	Authority string        `yaml:"authority"` // for advisory: the record that decides
}

// FreshnessMode is how far an output can be relied on.
type FreshnessMode string

// The modes of freshness.
const (
	Immediate FreshnessMode = "immediate" // what was read is what is
	Advisory  FreshnessMode = "advisory"  // another record decides
)

// Decision is whether a view is kept fresh live or by polling.
type Decision string

// The decisions.
const (
	Live    Decision = "live"
	Polling Decision = "polling"
)

// ServerSentEvents is the one transport: what a screen hears goes one way.
const ServerSentEvents = "server-sent-events"

func (n *Notification) inspect(i *inspection) {
	i.required("topic", n.Topic)
	i.required("query", n.Query)
	i.required("requirement", n.Requirement)
	i.required("polling", n.Polling)
	i.required("measured_cost", n.MeasuredCost)
	i.required("recovery", n.Recovery)
	oneOf(i, "decision", n.Decision, Live, Polling)
	oneOf(i, "freshness.mode", n.Freshness.Mode, Immediate, Advisory)
	if (n.Freshness.Mode == Advisory) != (n.Freshness.Authority != "") {
		i.report("freshness", "an advisory output names its authority, and only such a one", "freshness: {mode: advisory, authority: <record id>}")
	}
	if n.UpdateLatency <= 0 {
		i.report("update_latency", "update_latency is missing", "write the delay that the user's decision allows, such as 2s")
	}
	if n.ExpectedConnections <= 0 {
		i.report("expected_connections", "expected_connections is missing", "write how many screens listen at once")
	}
	switch n.Decision {
	case Live:
		oneOf(i, "transport", n.Transport, ServerSentEvents)
		i.required("platform_support", n.PlatformSupport)
		if n.PollInterval != 0 {
			i.report("poll_interval", "a live view does not poll", "leave poll_interval out, or write decision: polling")
		}
	case Polling:
		if n.PollInterval <= 0 || n.PollInterval > n.UpdateLatency {
			i.report("poll_interval", "poll_interval is missing, or longer than update_latency", "write an interval of at most update_latency, such as 5s")
		}
	}
}

func (n *Notification) references() []reference { return nil }
