package records

import "fmt"

// Journey is a use case in several steps, each a command of its own that the step before stages.
type Journey struct {
	Head           `yaml:",inline"`
	Trigger        string          `yaml:"trigger"` // what begins it, "use-cases/…" or "integration-events/…"
	Steps          []Step          `yaml:"steps"`
	Ends           []string        `yaml:"ends"` // the outcomes after which nothing follows
	DeliveryTarget *DeliveryTarget `yaml:"delivery_target"`
	Alerts         []string        `yaml:"alerts"`

	trigger Ref
}

// Step is one command of a journey.
type Step struct {
	ID      string `yaml:"id"` // the stable type of its message
	Command string `yaml:"command"`
	When    string `yaml:"when"` // what it waits for: an event, an answer, a time
}

func (j *Journey) inspect(i *inspection) {
	j.trigger = i.ref("trigger", j.Trigger, KindUseCase, KindIntegrationEvent)
	if len(j.Steps) == 0 {
		i.report("steps", "steps is missing", "a journey has at least one step")
	}
	seen := map[string]bool{}
	for at, step := range j.Steps {
		field := fmt.Sprintf("steps[%d]", at)
		if err := CheckID(step.ID); err != nil {
			i.report(field, field+".id "+err.Error(), "")
		} else if seen[step.ID] {
			i.report(field, fmt.Sprintf("step %s is declared twice", step.ID), "")
		}
		seen[step.ID] = true
		i.required(field+".command", step.Command)
		i.required(field+".when", step.When)
	}
	if len(j.Ends) == 0 {
		i.report("ends", "ends is missing", "name the outcomes after which nothing follows")
	}
	if j.DeliveryTarget == nil {
		i.report("delivery_target", "delivery_target is missing", "a step is staged work: it has a target, within and share")
	} else {
		j.DeliveryTarget.inspect(i)
	}
}

func (j *Journey) references() []reference {
	return append(to(KindSetting, "alerts", j.Alerts...), reference{field: "trigger", to: j.trigger})
}
