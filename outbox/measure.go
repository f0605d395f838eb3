package outbox

import "time"

// Result says what became of an attempt.
type Result string

const (
	// ResultDelivered: the target accepted the message.
	ResultDelivered Result = "delivered"
	// ResultRetry: there will be another attempt.
	ResultRetry Result = "retry"
	// ResultDeadLetter: there will be none.
	ResultDeadLetter Result = "dead-letter"
	// ResultStale: it came after its lease was lost, and changed nothing.
	ResultStale Result = "stale"
)

// Outcome is one settled attempt, for whoever measures.
type Outcome struct {
	Handler HandlerName
	Result  Result
	// Class is Delivered, or why not.
	Class Class
	// Duration is how long the handler ran; zero when it was never called.
	Duration time.Duration
}

// measure tells of a committed outcome.
func (d *Dispatcher) measure(o outcome) {
	if d.config.Measure == nil {
		return
	}
	m := Outcome{Handler: o.attempt.delivery.Handler, Result: ResultDelivered, Class: Delivered, Duration: o.took}
	if o.failure != nil {
		m.Result, m.Class = ResultRetry, o.failure.Class
		if o.verdict.dead {
			m.Result, m.Class = ResultDeadLetter, o.verdict.class
		}
	}
	if o.stale {
		m.Result = ResultStale
	}
	d.config.Measure(m)
}

// measureUnfit tells of deliveries that were given up unsent.
func (d *Dispatcher) measureUnfit(handler HandlerName, unfit []unfit) {
	for _, u := range unfit {
		if d.config.Measure != nil {
			d.config.Measure(Outcome{Handler: handler, Result: ResultDeadLetter, Class: u.failure.Class})
		}
	}
}
