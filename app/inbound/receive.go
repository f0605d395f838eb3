package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Outcome is what became of an event.
type Outcome string

const (
	// Applied: it was acted upon.
	Applied Outcome = "applied"
	// Noted: it is advisory, and was written down for whoever decides.
	Noted Outcome = "noted"
	// Outdated: something newer was known already, and stays.
	Outdated Outcome = "outdated"
	// Suppressed: it came before; nothing was changed again.
	Suppressed Outcome = "suppressed"
)

// Event is an inbound event that was verified and read.
type Event struct {
	ID      outbox.MessageID
	Source  string
	Type    string
	Version int
	Trust   records.Trust
	Data    json.RawMessage
}

// Receiver is what a module does with one type of event.
type Receiver struct {
	// UseCase is the one that the event sets off.
	UseCase mediator.UseCase
	// Versions are the schema versions that it reads.
	Versions []int
	// Receive changes what the event says, in the unit of work that also stores its id. It must respect the event's trust.
	Receive func(ctx context.Context, work *mediator.UnitOfWork, e Event) (Outcome, error)
}

// Envelope is the body of a request. All of it is signed.
type Envelope struct {
	Type          string          `json:"type" doc:"the event's type; a record integration-events/<type> with direction: inbound declares it" pattern:"^[a-z][a-z0-9-]{0,62}$" example:"member-suspended"`
	SchemaVersion *int            `json:"schema_version,omitempty" doc:"1 when left out" minimum:"1"`
	Timestamp     *string         `json:"timestamp,omitempty" format:"date-time" doc:"when the source sent it; for people"`
	Data          json.RawMessage `json:"data" doc:"the payload"`
}

// Taken answers an event.
type Taken struct {
	ID      outbox.MessageID `json:"id"`
	Outcome Outcome          `json:"outcome" enum:"applied,noted,outdated,suppressed"`
}

// Module takes events.
type Module struct {
	mediator  *mediator.Mediator
	records   func() *records.Set
	sources   map[string]Source
	verifiers map[string]*standardwebhooks.Webhook
	receivers map[string]Receiver
}

// New returns the module for the configured sources and what the product's other modules receive, by type.
func New(m *mediator.Mediator, set func() *records.Set, sources map[string]Source, receivers map[string]Receiver) (*Module, error) {
	i := &Module{mediator: m, records: set, sources: sources, verifiers: map[string]*standardwebhooks.Webhook{}, receivers: receivers}
	for name, source := range sources {
		if err := source.Check(name); err != nil {
			return nil, err
		}
		verifier, err := source.open(name)
		if err != nil {
			return nil, err
		}
		i.verifiers[name] = verifier
	}
	return i, nil
}

// ErrUnverified: the request does not prove that it comes from a configured source. An unknown source is answered alike.
var ErrUnverified = errors.New("the source is not known, or the signature does not fit the body, the id and the time")

// Take verifies a request's body and headers, and takes the event.
func (i *Module) Take(ctx context.Context, source string, header http.Header, body []byte, e Envelope) (Taken, error) {
	verifier, id := i.verifiers[source], ""
	if verifier == nil {
		return Taken{}, ErrUnverified
	}
	id, ok := signed(header)
	if !ok || verifier.Verify(body, header) != nil {
		return Taken{}, ErrUnverified
	}
	c := take{Event: Event{ID: outbox.MessageID(id), Source: source, Type: e.Type, Version: 1, Data: e.Data}, module: i}
	if e.SchemaVersion != nil {
		c.Version = *e.SchemaVersion
	}
	by := access.Principal{Actor: "source:" + source, Tenant: i.sources[source].tenant(), Role: access.Operator}
	c.receiver, ok = i.receivers[c.Type]
	record, declared := i.records().IntegrationEvent(c.Type)
	if !ok || !declared || record.Direction != records.Inbound {
		return Taken{}, unreadable("unknown-type", "/type", "No inbound event of this type is received here.")
	}
	c.Trust = record.Trust
	return mediator.Send(access.With(ctx, by), i.mediator, c, i.take)
}

// take is the command.
type take struct {
	Event
	module   *Module
	receiver Receiver
}

// UseCase implements mediator.Described.
func (t take) UseCase() mediator.UseCase { return t.receiver.UseCase }

// Validate implements mediator.Command: the event must be one that this program reads, and keep to the schema of its record.
func (t take) Validate() error {
	record, _ := t.module.records().IntegrationEvent(t.Type)
	reads := false
	for _, v := range t.receiver.Versions {
		reads = reads || v == t.Version
	}
	if _, declared := record.Version(t.Version); !declared || !reads {
		return unreadable("unknown-version", "/schema_version", "This schema version is not read here; send one that is, or wait for a newer Posthorn.")
	}
	var broken *records.PayloadError
	if err := record.Validate(t.Version, t.Data); errors.As(err, &broken) {
		var wrong mediator.Violations
		for _, v := range broken.Violations {
			wrong.Add("/data"+v.Path, v.Want)
		}
		return wrong.Refusal("invalid-payload", "The data does not keep to the schema that its record declares.",
			fmt.Sprintf("See the record integration-events/%s, version %d.", t.Type, t.Version))
	} else if err != nil {
		return err
	}
	return nil
}

// Authorize implements mediator.Command: a source sends what the operator allows it to.
func (t take) Authorize(by access.Principal) error {
	if !t.module.sources[t.Source].allows(t.Type) {
		return fmt.Errorf("%w: the source may not send this type", access.ErrForbidden)
	}
	return by.Require(access.Operator)
}

const (
	insertInbound = `INSERT INTO posthorn_inbound(tenant, source, message, type, outcome, received_at) VALUES (?, ?, ?, ?, '', ?) ON CONFLICT DO NOTHING`
	settleInbound = `UPDATE posthorn_inbound SET outcome = ? WHERE tenant = ? AND source = ? AND message = ?`
	// A few old ids go with each new one, once no sender can still be repeating them.
	forgetInbound = `DELETE FROM posthorn_inbound WHERE (tenant, source, message) IN
(SELECT tenant, source, message FROM posthorn_inbound WHERE received_at < ? ORDER BY received_at LIMIT 8)`
)

func (i *Module) take(ctx context.Context, work *mediator.UnitOfWork, t take) (Taken, error) {
	tenant := string(work.By.Tenant)
	n, err := i.exec(ctx, work, insertInbound, tenant, t.Source, string(t.ID), t.Type, work.Now.UnixMicro())
	if err != nil {
		return Taken{}, err
	}
	if n == 0 {
		return Taken{ID: t.ID, Outcome: Suppressed}, nil
	}
	outcome, err := t.receiver.Receive(ctx, work, t.Event)
	if err != nil {
		return Taken{}, err
	}
	if _, err := i.exec(ctx, work, settleInbound, string(outcome), tenant, t.Source, string(t.ID)); err != nil {
		return Taken{}, err
	}
	_, err = i.exec(ctx, work, forgetInbound, work.Now.Add(-i.keep()).UnixMicro())
	return Taken{ID: t.ID, Outcome: outcome}, err
}

func (i *Module) keep() time.Duration { return i.records().Duration("inbound-horizon") }

func (i *Module) exec(ctx context.Context, work *mediator.UnitOfWork, query string, args ...any) (int64, error) {
	stmt, err := work.Stmt(ctx, query)
	if err != nil {
		return 0, fmt.Errorf("take inbound event: %w", err)
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("take inbound event: %w", err)
	}
	return result.RowsAffected()
}

func unreadable(code, path, sentence string) error {
	return &mediator.Refusal{Kind: mediator.Invalid, Code: code, Sentence: sentence, Hint: "GET /v1/records lists the integration events; /openapi.json describes the envelope.",
		At: []mediator.Violation{{Path: path, Message: "must be one that this Posthorn receives"}}}
}
