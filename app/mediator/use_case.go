package mediator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// UseCase ties a command to the record that declares it, and says what may follow it. A module lists its own in one place, and a program
// whose list does not agree with the records does not start (Check); so a new use case is its command, its record, its test, and one entry.
type UseCase struct {
	// Record is "use-cases/<id>", "reactions/<id>" for what answers an event, or "journeys/<id>" for a step of one.
	Record string
	// Step is the step's id, the type of its message; for a journey only.
	Step string
	// Emits are the types of the integration events that it may raise; records.AnyEvent: its caller names them.
	Emits []string
	// Runs are the types of the journey steps and provider effects that it may raise.
	Runs []string
}

// Described is a command that belongs to a use case. What raises a message must be one.
type Described interface {
	UseCase() UseCase
}

// ErrUnregistered is answered to a command whose use case is not in the list that the mediator was given.
var ErrUnregistered = errors.New("the use case is not registered")

// ErrUndeclaredEffect is answered to a command that raised a message which its use case does not declare.
var ErrUndeclaredEffect = errors.New("the use case does not declare this effect")

func (u UseCase) name() string { return strings.TrimSuffix(u.Record+"#"+u.Step, "#") }

// declares reports whether the use case may raise a message.
func (u UseCase) declares(m outbox.Message) bool {
	if m.Kind == outbox.IntegrationEvent || m.Kind == "" {
		return slices.Contains(u.Emits, m.Type) || slices.Contains(u.Emits, records.AnyEvent)
	}
	return slices.Contains(u.Runs, m.Type)
}

// Check holds use cases against the records in effect: each has its record, declares what the record declares, and emits only events that
// are declared. Its error names every difference.
func Check(set *records.Set, useCases []UseCase) error {
	var wrong []error
	seen := map[string]bool{}
	for _, u := range useCases {
		differ := func(format string, values ...any) {
			wrong = append(wrong, fmt.Errorf("use case %s: "+format, append([]any{u.name()}, values...)...))
		}
		if seen[u.name()] {
			differ("it is registered twice")
		}
		seen[u.name()] = true
		kind, id, _ := strings.Cut(u.Record, "/")
		record, ok := set.Get(records.Ref{Kind: records.Kind(kind), ID: id})
		if !ok {
			differ("no record declares it; write records/%s.md", u.Record)
			continue
		}
		switch r := record.(type) {
		case *records.UseCase:
			if !sameTexts(u.Emits, r.Emits) {
				differ("it emits %v, and its record says %v", u.Emits, r.Emits)
			}
			if !sameTexts(u.Runs, r.Runs) {
				differ("it runs %v, and its record says %v", u.Runs, r.Runs)
			}
		case *records.Reaction:
			if r.Delivery == records.Excluded && len(u.Emits)+len(u.Runs) > 0 {
				differ("an excluded reaction stages nothing")
			}
		case *records.Journey:
			if !slices.ContainsFunc(r.Steps, func(s records.Step) bool { return s.ID == u.Step }) {
				differ("the journey's record has no such step")
			}
		case *records.Convention, *records.IntegrationEvent, *records.Job, *records.Notification, *records.Runbook, *records.Setting:
			differ("its record is none of a use case, a reaction or a journey")
		}
		for _, event := range u.Emits {
			if found, ok := set.IntegrationEvent(event); event != records.AnyEvent && (!ok || found.Direction != records.Outbound) {
				differ("no record declares the outbound event %s", event)
			}
		}
	}
	return errors.Join(wrong...)
}

func sameTexts(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
