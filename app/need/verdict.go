package need

import (
	"fmt"
	"time"
)

// judge says whether the measurement shows a need. Polling is enough where one interval keeps to the target within the budget.
func (r *Result) judge(b Budget) {
	cheapest, stream := r.slowestWithin(), r.Stream
	if stream != nil && stream.Seen == 0 {
		stream = nil // nothing was told, so nothing was measured
	}
	switch {
	case cheapest == nil:
		r.Needed = true
		r.Because = fmt.Sprintf("no interval that was measured keeps 99 of 100 changes within %s", r.Target)
	case cheapest.load(r.Screens) <= b.CPU && cheapest.Bytes <= b.Bytes:
		r.Because = fmt.Sprintf("polling every %s keeps to %s and costs %s", cheapest.Every, r.Target, cheapest.cost(r.Screens))
	case stream != nil && stream.P99 > r.Target:
		r.Because = fmt.Sprintf("polling every %s costs %s, more than the budget, but the stream misses %s, too", cheapest.Every, cheapest.cost(r.Screens), r.Target)
	case r.leastOfStream(stream) >= cheapest.Bytes:
		r.Because = fmt.Sprintf("polling every %s costs %s, more than the budget, but a stream would have the query read at each change and send no less",
			cheapest.Every, cheapest.cost(r.Screens))
	default:
		r.Needed = true
		r.Because = fmt.Sprintf("polling must come every %s to keep to %s, and costs %s, more than the budget", cheapest.Every, r.Target, cheapest.cost(r.Screens))
		if stream != nil {
			r.Because += fmt.Sprintf("; the stream takes %s and costs %s", stream.P99.Round(time.Millisecond), stream.cost(r.Screens))
		}
	}
}

// leastOfStream is what a stream sends at the least, where there is none to be measured: one read for each change.
func (r *Result) leastOfStream(measured *Way) int64 {
	if measured != nil {
		return measured.Bytes
	}
	some := r.Polling[0]
	return some.Bytes / int64(time.Hour/some.Every) * int64(r.Changes)
}

// slowestWithin is the longest interval that keeps to the target: it costs least.
func (r *Result) slowestWithin() *Way {
	var best *Way
	for i := range r.Polling {
		if w := &r.Polling[i]; w.P99 <= r.Target && (best == nil || w.Every > best.Every) {
			best = w
		}
	}
	return best
}

// load is the part of a core that so many screens keep busy.
func (w Way) load(screens int) float64 {
	return max(0, w.CPU.Seconds()) / time.Hour.Seconds() * float64(screens)
}

func (w Way) cost(screens int) string {
	text := fmt.Sprintf("%.1f MB an hour for a screen", float64(w.Bytes)/1e6)
	if w.CPU >= 0 {
		text = fmt.Sprintf("%.2f %% of a core for %d screens and ", 100*w.load(screens), screens) + text
	}
	return text
}
