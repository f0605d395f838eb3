package need

import (
	"time"
)

// Screen is what is measured: one that shows the answer of a query.
type Screen struct {
	// Record is the id of its notification record.
	Record string
	// Topic is what it listens to, or would: "messages/{id}".
	Topic string
	// Query is the path that it reads, with the topic's placeholders: "/v1/messages/{id}".
	Query string
	// Target is the visible delay that the decision allows.
	Target time.Duration
	// Screens is how many there are at once.
	Screens int
	// Live says that the topic exists, so that the stream can be measured.
	Live bool
}

// Budget is what polling may cost before a topic is worth having.
type Budget struct {
	// CPU is the part of one core for all of a record's screens together.
	CPU float64
	// Bytes is what one screen may receive and send in an hour.
	Bytes int64
}

// Way is one way of keeping a screen right, as measured.
type Way struct {
	// Every is the interval of polling; zero is the stream.
	Every time.Duration `json:"every_ns"`
	// P50 and P99 are the visible delay: from the answer to the change until the screen has read what is so since.
	P50 time.Duration `json:"delay_p50_ns"`
	P99 time.Duration `json:"delay_p99_ns"`
	// Seen is how many changes, over all screens, the delays are drawn from.
	Seen int `json:"seen"`
	// CPU is what the server spends on one screen in an hour; negative where the system does not tell.
	CPU time.Duration `json:"cpu_hour_ns"`
	// Bytes go over the wire for one screen in an hour, both ways.
	Bytes int64 `json:"bytes_hour"`
}

// Result is a screen's measurement.
type Result struct {
	Record string        `json:"record"`
	Topic  string        `json:"topic"`
	Target time.Duration `json:"target_ns"`
	// Screens and Changes are what the costs were computed for: how many screens, and how many changes an hour.
	Screens int   `json:"screens"`
	Changes int   `json:"changes_hour"`
	Polling []Way `json:"polling"`
	Stream  *Way  `json:"stream,omitempty"`
	// Needed is the verdict; Because says it in a sentence.
	Needed  bool   `json:"needed"`
	Because string `json:"because"`
}
