package alerts

import (
	"slices"
	"time"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Rule is one threshold: a setting that use cases name as their alert.
type Rule struct {
	Setting   *records.Setting
	Threshold float64 // in the setting's unit; seconds for a duration
	UseCases  []string
	Runbooks  []string
}

// Rules are the thresholds that the records in effect declare.
func Rules(set *records.Set) []Rule {
	var rules []Rule
	for _, setting := range set.Settings() {
		if setting.Measures == "" {
			continue
		}
		rule := Rule{Setting: setting, Threshold: setting.Value.Number(), UseCases: []string{}, Runbooks: []string{}}
		for _, useCase := range records.List[*records.UseCase](set) {
			if slices.Contains(useCase.Alerts, setting.ID) {
				rule.UseCases = append(rule.UseCases, useCase.ID)
			}
		}
		for _, runbook := range records.List[*records.Runbook](set) {
			if slices.Contains(runbook.Tells, setting.ID) {
				rule.Runbooks = append(rule.Runbooks, runbook.ID)
			}
		}
		// A threshold that no use case names watches nobody's target.
		if len(rule.UseCases) > 0 {
			rules = append(rules, rule)
		}
	}
	return rules
}

// Reading is what is measured at one moment.
type Reading struct {
	Backlog outbox.Backlog
	// StoreDown is how long the store could not be used; zero while it can.
	StoreDown time.Duration
	// RoomUsed and RoomBudget are bytes of the database.
	RoomUsed, RoomBudget int64
	// LostTail is how many commits had been lost at the start, and were given up.
	LostTail int64
	// Missing is how many objects of its contract the outbox lacks.
	Missing int
}

// values gives what a measure reads, by handler; what concerns the whole store has the handler "".
func (r Reading) values(measure records.Measure) map[outbox.HandlerName]float64 {
	values := map[outbox.HandlerName]float64{}
	switch measure {
	case records.StoreOutage:
		values[""] = r.StoreDown.Seconds()
		return values
	case records.RoomUsed:
		if r.RoomBudget > 0 {
			values[""] = float64(r.RoomUsed) / float64(r.RoomBudget)
		}
		return values
	case records.LostTail:
		values[""] = float64(r.LostTail)
		return values
	case records.OutboxIncomplete:
		values[""] = float64(r.Missing)
		return values
	case records.ClockUntrusted:
		// It is the machine's clock, not a lane's.
		for _, lane := range r.Backlog.Lanes {
			if lane.Hold == outbox.ClockUntrusted {
				values[""]++
			}
		}
		return values
	case records.OldestPendingAge, records.DeadLetters, records.FailureRate, records.Unclaimed:
	}
	for _, lane := range r.Backlog.Lanes {
		values[lane.Handler] = ofLane(measure, lane)
	}
	return values
}

func ofLane(measure records.Measure, lane outbox.LaneBacklog) float64 {
	switch measure {
	case records.OldestPendingAge:
		// What is held waits because somebody wants it to.
		if lane.Hold == "" {
			return lane.OldestPending.Seconds()
		}
	case records.DeadLetters:
		return float64(lane.Failed)
	case records.FailureRate:
		if lane.Success5m != nil {
			return 1 - *lane.Success5m
		}
	case records.Unclaimed:
		// A handler that is gone is nobody's wish.
		if lane.Hold == outbox.Unregistered {
			return float64(lane.Pending)
		}
	case records.StoreOutage, records.RoomUsed, records.ClockUntrusted, records.LostTail, records.OutboxIncomplete:
	}
	return 0
}
