package records

// Delivery is how what follows a commit survives a crash.
type Delivery string

// The deliveries.
const (
	ByOutbox Delivery = "outbox"   // staged with the change
	Excluded Delivery = "excluded" // emitted after the commit, lost by a crash, repeated by hand
)

// Exclusion says why something needs no outbox: its loss is accepted, and somebody can repeat it.
type Exclusion struct {
	Delivery     Delivery `yaml:"delivery"`
	AcceptedLoss string   `yaml:"accepted_loss"` // who accepts which loss, for an excluded one
	RepeatWith   string   `yaml:"repeat_with"`   // the command that repeats it by hand
}

func (e *Exclusion) inspect(i *inspection) {
	oneOf(i, "delivery", e.Delivery, ByOutbox, Excluded)
	switch e.Delivery {
	case Excluded:
		i.required("accepted_loss", e.AcceptedLoss)
		i.required("repeat_with", e.RepeatWith)
	case ByOutbox:
		if e.AcceptedLoss+e.RepeatWith != "" {
			i.report("delivery", "what the outbox delivers has no accepted loss", "drop accepted_loss and repeat_with, or write delivery: excluded")
		}
	}
}

// Reaction is what the product does in answer to an event.
type Reaction struct {
	Head      `yaml:",inline"`
	Exclusion `yaml:",inline"`
	On        string `yaml:"on"`  // the event, by its stable name
	Key       string `yaml:"key"` // what makes a repetition harmless, for one by outbox
}

func (r *Reaction) inspect(i *inspection) {
	i.required("on", r.On)
	r.Exclusion.inspect(i)
	if r.Delivery == ByOutbox {
		i.required("key", r.Key)
	}
}

func (r *Reaction) references() []reference { return nil }
