package records

import (
	"errors"
	"fmt"
	"slices"
)

// IntegrationEvent declares a fact that crosses the border of the application: its direction, its payload, the trust that its
// readers may have in it, and how it is delivered. Its id is the type of its messages.
type IntegrationEvent struct {
	Head         `yaml:",inline"`
	Direction    Direction `yaml:"direction"`
	Trust        Trust     `yaml:"trust"`
	Guarantee    Guarantee `yaml:"guarantee"`
	Boundary     string    `yaml:"boundary"`      // what counts as accepted downstream
	Duplicates   string    `yaml:"duplicates"`    // what a receiver sees and does when a message comes again
	RetryHorizon string    `yaml:"retry_horizon"` // the setting that bounds the retries
	Runbook      string    `yaml:"runbook"`       // what to do when the retries end
	Versions     []Version `yaml:"versions"`
}

// Direction is which way an event crosses the border.
type Direction string

// The directions.
const (
	Outbound Direction = "outbound"
	Inbound  Direction = "inbound"
)

// Trust is what a reader may do with an event.
type Trust string

// The kinds of trust.
const (
	Authoritative Trust = "authoritative" // the sender owns the fact: act on it
	AdvisoryTrust Trust = "advisory"      // a hint: ask the owner before acting
)

// Guarantee is how often an event arrives.
type Guarantee string

// AtLeastOnce is the one guarantee that the outbox gives across a border.
const AtLeastOnce Guarantee = "at-least-once"

// ErrNoVersion is returned, wrapped, for a schema version that the record of an event does not declare.
var ErrNoVersion = errors.New("schema version is not declared")

func (e *IntegrationEvent) inspect(i *inspection) {
	oneOf(i, "direction", e.Direction, Outbound, Inbound)
	oneOf(i, "trust", e.Trust, Authoritative, AdvisoryTrust)
	oneOf(i, "guarantee", e.Guarantee, AtLeastOnce)
	i.required("boundary", e.Boundary)
	i.required("duplicates", e.Duplicates)
	i.required("retry_horizon", e.RetryHorizon)
	i.id("retry_horizon", e.RetryHorizon)
	i.required("runbook", e.Runbook)
	i.id("runbook", e.Runbook)
	if len(e.Versions) == 0 {
		i.report("versions", "versions is missing", "declare at least one, with a classification for each field of its payload")
	}
	seen := map[int]bool{}
	for at := range e.Versions {
		version := &e.Versions[at]
		field := fmt.Sprintf("versions[%d]", at)
		version.inspect(i, field, e.ID)
		if seen[version.Number] {
			i.report(field, fmt.Sprintf("version %d is declared twice", version.Number), "")
		}
		seen[version.Number] = true
	}
}

func (e *IntegrationEvent) references() []reference {
	return append(to(KindSetting, "retry_horizon", e.RetryHorizon), to(KindRunbook, "runbook", e.Runbook)...)
}

// Version finds a declared schema version.
func (e *IntegrationEvent) Version(number int) (*Version, bool) {
	at := slices.IndexFunc(e.Versions, func(v Version) bool { return v.Number == number })
	if at < 0 {
		return nil, false
	}
	return &e.Versions[at], true
}

// Validate checks a payload against a version's JSON Schema; without a schema any bytes do. The error is ErrNoVersion or a
// *PayloadError, which names paths and what the schema wants, never a value from the payload.
func (e *IntegrationEvent) Validate(version int, payload []byte) error {
	declared, ok := e.Version(version)
	if !ok {
		return fmt.Errorf("validate %s version %d: %w", e.ID, version, ErrNoVersion)
	}
	if violations := declared.violations(payload); len(violations) > 0 {
		return &PayloadError{Type: e.ID, Version: version, Violations: violations}
	}
	return nil
}
