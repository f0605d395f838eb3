package records

import "slices"

// Measure is what an alert compares with its threshold.
type Measure string

// The measures.
const (
	OldestPendingAge Measure = "oldest-pending-age" // how long the oldest delivery that is not held has been due
	DeadLetters      Measure = "dead-letters"
	FailureRate      Measure = "failure-rate"      // failed ÷ ended attempts of the last five minutes
	Unclaimed        Measure = "unclaimed"         // pending deliveries whose handler is gone
	StoreOutage      Measure = "store-outage"      // how long the store could not be used
	RoomUsed         Measure = "room-used"         // the database's size ÷ its budget
	ClockUntrusted   Measure = "clock-untrusted"   // lanes that wait because the clock cannot be right
	LostTail         Measure = "lost-tail"         // commits that the database had lost at this start, and that were given up
	OutboxIncomplete Measure = "outbox-incomplete" // objects of the contract that another program's database lacks
)

// units are what each measure is counted in.
var units = map[Measure]Unit{
	OldestPendingAge: Duration, DeadLetters: Count, FailureRate: Ratio, Unclaimed: Count, StoreOutage: Duration, RoomUsed: Ratio, ClockUntrusted: Count, LostTail: Count, OutboxIncomplete: Count,
}

// OfLanes says that the measure is taken of the lanes, so that it says nothing while they cannot be read.
func (m Measure) OfLanes() bool {
	return m != StoreOutage && m != RoomUsed && m != LostTail && m != OutboxIncomplete
}

func (m Measure) inspect(i *inspection, unit Unit) {
	if m == "" {
		return
	}
	all := make([]Measure, 0, len(units))
	for measure := range units {
		all = append(all, measure)
	}
	slices.Sort(all)
	oneOf(i, "measures", m, all...)
	if want, ok := units[m]; ok && want != unit {
		i.report("measures", string(m)+" is counted in "+string(want), "write unit: "+string(want))
	}
}

// checkAlerts finds use cases whose alert nobody would ever raise.
func (s *Set) checkAlerts(u *UseCase) Problems {
	var problems Problems
	for _, id := range u.Alerts {
		if setting, ok := s.Setting(id); ok && setting.Measures == "" {
			problems = append(problems, Problem{File: u.File, Line: u.document.line("alerts"), Text: "alerts names settings/" + id + ", which measures nothing",
				Hint: "write measures: into that setting, or name another"})
		}
	}
	return problems
}
