package emits

import (
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Judge decides what may be staged, by the records in effect.
type Judge struct {
	// Records gives the records in effect; they change when a file does.
	Records func() *records.Set
	// DataDir is named in the command that declares a type.
	DataDir string
}

// Read reads one event; path is where it stands in its request.
func (j Judge) Read(path string, e Emit) (outbox.Message, error) {
	m, err := e.Message(path)
	if err != nil {
		return m, err
	}
	set := j.Records()
	if most := set.Bytes("payload-limit"); int64(len(m.Payload)) > most {
		return m, tooLarge(path, most)
	}
	event, declared := set.IntegrationEvent(m.Type)
	if !declared {
		return m, j.undeclared(path, m, "posthorn records new integration-event "+m.Type+" --trust authoritative"+
			fmt.Sprintf(" --schema-version %d --data-dir %s", m.SchemaVersion, j.dataDir()))
	}
	if event.Direction == records.Inbound {
		return m, &mediator.Refusal{Kind: mediator.Invalid, Code: "inbound-type",
			Sentence: "Events of this type come in from outside; they cannot be emitted here.",
			Hint:     "Emit a type whose record says direction: outbound.",
			At:       []mediator.Violation{{Path: path + "/type", Message: "must name an outbound event"}}}
	}
	if _, ok := event.Version(m.SchemaVersion); !ok {
		return m, j.undeclared(path, m, fmt.Sprintf("Add version %d to %s/records/integration-events/%s.md", m.SchemaVersion, j.dataDir(), m.Type))
	}
	return m, unfit(path, event.Validate(m.SchemaVersion, m.Payload))
}

func (j Judge) dataDir() string {
	if j.DataDir == "" {
		return "D"
	}
	return j.DataDir
}

// undeclared refuses a type or version without a record. The type may be repeated: it has passed the pattern of types.
func (j Judge) undeclared(path string, m outbox.Message, hint string) error {
	return &mediator.Refusal{Kind: mediator.Invalid, Code: "undeclared-type",
		Sentence: "No integration-event record declares this type and schema_version.",
		Hint:     hint,
		At:       []mediator.Violation{{Path: path + "/type", Message: fmt.Sprintf("%s version %d is not declared", m.Type, m.SchemaVersion)}}}
}

// unfit refuses a payload that its schema does not take.
func unfit(path string, err error) error {
	var broken *records.PayloadError
	if err == nil || !errors.As(err, &broken) {
		return err
	}
	var wrong mediator.Violations
	for _, v := range broken.Violations {
		wrong.Add(path+"/payload"+v.Path, v.Want)
	}
	return wrong.Refusal("invalid-payload", "The payload does not keep to the schema that its record declares.",
		fmt.Sprintf("See the record integration-events/%s, version %d.", broken.Type, broken.Version))
}
