package documents

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Transaction changes documents and says what happened.
type Transaction struct {
	Changes []Change     `json:"changes,omitempty" doc:"applied in order"`
	Emits   []emits.Emit `json:"emits,omitempty" doc:"staged in the same transaction, in order"`
}

// Version is a document as a transaction left it.
type Version struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	Version    int64  `json:"version"`
	Deleted    bool   `json:"deleted,omitempty"`
}

// Staged is a message that was staged.
type Staged struct {
	ID         outbox.MessageID `json:"id"`
	Type       string           `json:"type"`
	Deliveries int              `json:"deliveries" doc:"how many handlers it waits for"`
}

// Outcome answers a transaction.
type Outcome struct {
	Documents []Version `json:"documents"`
	Messages  []Staged  `json:"messages"`
}

// Module is the use cases of documents.
type Module struct {
	mediator *mediator.Mediator
	judge    emits.Judge
}

// New returns the module.
func New(m *mediator.Mediator, judge emits.Judge) *Module {
	return &Module{mediator: m, judge: judge}
}

// Transact carries out a transaction. receipt, unless nil, is the one of the caller's idempotency key. A repetition of a transaction
// that gave an id to a message is answered like the first, too.
func (d *Module) Transact(ctx context.Context, t Transaction, receipt *mediator.Receipt) (mediator.Answer, error) {
	receipts := receipt.Only()
	for _, e := range t.Emits {
		if e.ID != nil && outbox.ValidID(*e.ID) {
			print, err := t.fingerprint()
			if err != nil {
				return mediator.Answer{}, err
			}
			receipts = append(receipts, mediator.IDReceipt(outbox.MessageID(*e.ID), print))
			break
		}
	}
	return mediator.SendOnce(ctx, d.mediator, receipts, &transact{Transaction: t, module: d}, d.transact, encode)
}

// fingerprint hashes what a transaction asks for, however its envelope was written.
func (t Transaction) fingerprint() ([sha256.Size]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint transaction: %w", err)
	}
	// Beside the envelope the bytes themselves: writing JSON anew drops its spaces.
	parts := [][]byte{[]byte("transaction"), text}
	for _, c := range t.Changes {
		parts = append(parts, c.Body)
	}
	for _, e := range t.Emits {
		parts = append(parts, e.Payload)
	}
	return mediator.Fingerprint(parts...), nil
}

// transact is the command.
type transact struct {
	Transaction
	module   *Module
	messages []outbox.Message
}

// UseCase is the one that a transaction belongs to.
var UseCase = mediator.UseCase{Record: "use-cases/change-documents", Emits: []string{records.AnyEvent}}

// UseCase implements mediator.Described.
func (t *transact) UseCase() mediator.UseCase { return UseCase }

// Validate implements mediator.Command. It also reads the events, so that what costs most is done before the writer is asked.
func (t *transact) Validate() error {
	set := t.module.judge.Records()
	var wrong mediator.Violations
	if most := set.Int("transaction-changes"); len(t.Changes) > most {
		wrong.Add("/changes", fmt.Sprintf("must have at most %d entries (setting transaction-changes)", most))
	}
	if most := set.Int("transaction-emits"); len(t.Emits) > most {
		wrong.Add("/emits", fmt.Sprintf("must have at most %d entries (setting transaction-emits)", most))
	}
	if len(t.Changes) == 0 && len(t.Emits) == 0 {
		wrong.Add("/changes", "must have an entry, unless emits has one")
	}
	if len(wrong) == 0 {
		for i, c := range t.Changes {
			c.validate("/changes/"+strconv.Itoa(i), &wrong)
		}
	}
	if err := wrong.Refusal("invalid", "The transaction is not as it should be.", ""); err != nil {
		return err
	}
	t.messages = make([]outbox.Message, len(t.Emits))
	for i, e := range t.Emits {
		m, err := t.module.judge.Read("/emits/"+strconv.Itoa(i), e)
		if err != nil {
			return err
		}
		t.messages[i] = m
	}
	return nil
}

// Authorize implements mediator.Command.
func (t *transact) Authorize(by access.Principal) error { return by.Require(access.Operator) }

// result is what the unit of work leaves; its messages are filled once they are staged.
type result struct {
	documents []Version
	messages  []*mediator.Raised
	first     *Outcome // everything was staged before: the answer to the first of two equal requests
}

func (d *Module) transact(ctx context.Context, work *mediator.UnitOfWork, t *transact) (result, error) {
	known, err := emits.FindAll(ctx, work.Tx, work.By.Tenant, "/emits", t.messages)
	if err != nil {
		return result{}, err
	}
	if known != nil {
		return repeated(t, known)
	}
	r := result{documents: make([]Version, 0, len(t.Changes)), messages: make([]*mediator.Raised, 0, len(t.messages))}
	for i, c := range t.Changes {
		v, err := apply(ctx, work, "/changes/"+strconv.Itoa(i), c)
		if err != nil {
			return result{}, err
		}
		r.documents = append(r.documents, v)
	}
	for _, m := range t.messages {
		r.messages = append(r.messages, work.Raise(m))
	}
	return r, nil
}

// repeated answers a transaction whose messages are all staged already, with equal content. Without changes there is nothing left to do;
// with changes it is not known whether they were made with them, since then the first answer would have been found.
func repeated(t *transact, known []emits.Known) (result, error) {
	if len(t.Changes) > 0 {
		return result{}, emits.Duplicate("/emits/0/id")
	}
	first := &Outcome{Documents: []Version{}, Messages: make([]Staged, len(known))}
	for i, k := range known {
		first.Messages[i] = Staged{ID: k.ID, Type: k.Type, Deliveries: k.Deliveries}
	}
	return result{first: first}, nil
}

func encode(r result) (mediator.Answer, error) {
	status, out := 201, Outcome{Documents: r.documents, Messages: make([]Staged, len(r.messages))}
	if r.first != nil {
		status, out = 200, *r.first
	}
	for i, m := range r.messages {
		out.Messages[i] = Staged{ID: m.ID, Type: m.Type, Deliveries: m.Deliveries}
	}
	body, err := json.Marshal(out)
	return mediator.Answer{Status: status, Body: body, Replayed: r.first != nil}, err
}
