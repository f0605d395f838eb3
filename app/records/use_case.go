package records

import "time"

// AnyEvent in UseCase.Emits stands for every declared outbound integration event: the caller names which.
const AnyEvent = "*"

// UseCase is one thing that somebody does with the product: what it changes, and what follows the commit.
type UseCase struct {
	Head           `yaml:",inline"`
	Actor          string          `yaml:"actor"`
	Request        Request         `yaml:"request"`
	Changes        string          `yaml:"changes"` // the aggregate that a command changes
	Emits          []string        `yaml:"emits"`   // integration events staged with the change, or AnyEvent
	Runs           []string        `yaml:"runs"`    // journeys and provider effects staged with the change
	DeliveryTarget *DeliveryTarget `yaml:"delivery_target"`
	Alerts         []string        `yaml:"alerts"` // the settings that watch the target
}

// Request is what a use case asks of the mediator.
type Request string

// The requests.
const (
	Command Request = "command"
	Query   Request = "query"
)

// DeliveryTarget is what the business accepts between a commit and its effect outside.
type DeliveryTarget struct {
	Within Span  `yaml:"within"` // the age at which a message counts as late
	Share  Share `yaml:"share"`  // the part of messages that arrive within it while their target answers
}

// Age is Within as the standard library has it.
func (d *DeliveryTarget) Age() time.Duration { return time.Duration(d.Within) }

func (d *DeliveryTarget) inspect(i *inspection) {
	if d.Within <= 0 {
		i.report("delivery_target", "delivery_target.within is missing", "write the time after which a message is late, such as 30s")
	}
	if d.Share <= 0 {
		i.report("delivery_target", "delivery_target.share is missing", "write the part that arrives within it, such as 99%")
	}
}

func (u *UseCase) inspect(i *inspection) {
	i.required("actor", u.Actor)
	oneOf(i, "request", u.Request, Command, Query)
	for _, event := range u.Emits {
		if event != AnyEvent {
			i.id("emits", event)
		}
	}
	effects := len(u.Emits) + len(u.Runs)
	if u.Request == Query && effects > 0 {
		i.report("request", "a query changes nothing, so nothing follows it", "make it a command, or drop emits and runs")
	}
	switch {
	case u.DeliveryTarget != nil:
		u.DeliveryTarget.inspect(i)
	case effects > 0:
		i.report("emits", "delivery_target is missing", "what is emitted or run after the commit has a target: within and share")
	}
	if u.DeliveryTarget != nil && len(u.Alerts) == 0 {
		i.report("delivery_target", "alerts is missing", "name the settings that say when this target is missed")
	}
}

func (u *UseCase) references() []reference {
	list := to(KindSetting, "alerts", u.Alerts...)
	for _, event := range u.Emits {
		if event != AnyEvent {
			list = append(list, to(KindIntegrationEvent, "emits", event)...)
		}
	}
	return list
}
