package realtime

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrFreshness refuses a notification whose freshness is not declared, or half declared.
var ErrFreshness = errors.New("invalid freshness")

// ErrVersion refuses a notification with a negative version.
var ErrVersion = errors.New("negative version")

// ErrEventTooLarge refuses a notification that would not fit into one event.
var ErrEventTooLarge = errors.New("event too large")

// Notification is a live, lossy hint that something changed. It holds no state of its own: who receives it asks the query that
// owns the truth. That is why only the newest notification of a topic has to arrive.
type Notification struct {
	// Topic names what changed.
	Topic Topic `json:"topic"`
	// ID is the resource that changed, for a topic that covers more than one.
	ID string `json:"resource"`
	// Version rises with every change of the topic, best taken from the commit. A client drops what is not newer than what it
	// has seen. Zero means that the topic has no versions: such notifications are never dropped.
	Version int64 `json:"version"`
	// Change is a short word for what happened, such as "updated" or "deleted".
	Change string `json:"change"`
	// Freshness says whether a screen may act on what it then reads.
	Freshness Freshness `json:"freshness"`
}

// Mode is the kind of a [Freshness].
type Mode string

const (
	// ModeImmediate: what the query answers is the decision itself.
	ModeImmediate Mode = "immediate"
	// ModeAdvisory: what the query answers is provisional, and somebody else decides.
	ModeAdvisory Mode = "advisory"
)

// Freshness declares how far a value that was refreshed by a notification may be trusted. On the wire it is
// {"mode":"immediate"} or {"mode":"advisory","authority":"…"}.
type Freshness struct {
	Mode Mode `json:"mode"`
	// Authority is the id of the record that decides, for an advisory value.
	Authority string `json:"authority,omitempty"`
}

// Immediate is the freshness of values that are decisions themselves.
func Immediate() Freshness { return Freshness{Mode: ModeImmediate} }

// Advisory is the freshness of values on which the named authority decides.
func Advisory(authority string) Freshness {
	return Freshness{Mode: ModeAdvisory, Authority: authority}
}

func (f Freshness) check() error {
	switch f.Mode {
	case ModeImmediate:
		if f.Authority != "" {
			return fmt.Errorf("%w: an immediate value has no authority beside it", ErrFreshness)
		}
	case ModeAdvisory:
		if f.Authority == "" {
			return fmt.Errorf("%w: an advisory value names its authority", ErrFreshness)
		}
	default:
		return fmt.Errorf("%w: mode %q is neither immediate nor advisory", ErrFreshness, f.Mode)
	}
	return nil
}

// MarshalJSON refuses a freshness that is not declared.
func (f Freshness) MarshalJSON() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	type plain Freshness
	return json.Marshal(plain(f))
}

// UnmarshalJSON refuses what MarshalJSON would not write.
func (f *Freshness) UnmarshalJSON(b []byte) error {
	type plain Freshness
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	if err := Freshness(p).check(); err != nil {
		return err
	}
	*f = Freshness(p)
	return nil
}

// published is a notification with its place in the hub's order. It is shared by all connections and never changed.
type published struct {
	key  key
	seq  uint64
	note Notification
	data []byte
}

// key is a topic inside its tenant.
type key struct {
	tenant string
	topic  Topic
}

// newer reports whether b still has to be told to somebody who was told a.
func newer(a, b Notification) bool {
	return a.Version == 0 || b.Version == 0 || b.Version >= a.Version
}

// encode makes the data of an event. json.Marshal leaves no CR, LF or NUL in it.
func encode(n Notification, limit int) ([]byte, error) {
	if err := n.Topic.check(); err != nil {
		return nil, err
	}
	if n.Version < 0 {
		return nil, fmt.Errorf("%w: %d", ErrVersion, n.Version)
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%w: %d bytes of at most %d", ErrEventTooLarge, len(data), limit)
	}
	return data, nil
}
