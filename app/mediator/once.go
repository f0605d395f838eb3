package mediator

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/outbox"
)

// Answer is what a command was answered, as it is kept for a repetition.
type Answer struct {
	Status int
	Body   []byte
	// Replayed: this is the stored answer to an earlier, equal request.
	Replayed bool
}

// Receipt names a request, so that a repetition of it is answered like the first and changes nothing.
type Receipt struct {
	// Key is unique for a request within its tenant: KeyReceipt for a key that the caller gave, IDReceipt for the id of a message.
	Key string
	// Request is the hash of the request's content.
	Request [sha256.Size]byte
	// Strict: another request under the same key is refused. Otherwise it is run, and its handler judges it.
	Strict bool
}

// KeyReceipt is the receipt of a request that carried an idempotency key.
func KeyReceipt(key string, request [sha256.Size]byte) Receipt {
	return Receipt{Key: "key:" + key, Request: request, Strict: true}
}

// IDReceipt is the receipt of a request that gave a message an id of its own: the id is an idempotency key too.
func IDReceipt(id outbox.MessageID, request [sha256.Size]byte) Receipt {
	return Receipt{Key: "id:" + string(id), Request: request}
}

// Only lists the one receipt, or none, of a request that may carry an idempotency key.
func (r *Receipt) Only() []Receipt {
	if r == nil {
		return nil
	}
	return []Receipt{*r}
}

// SendOnce is Send for requests that may come again: the answer is stored, under each receipt, in the unit of work of the change, and a
// repetition gets it back. Without a receipt it is Send with an encoded answer.
func SendOnce[C Command, R any](ctx context.Context, m *Mediator, receipts []Receipt, c C, handle Handler[C, R],
	encode func(R) (Answer, error)) (Answer, error) {
	if err := m.registered(c); err != nil {
		return Answer{}, err
	}
	by, err := admit(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	err = m.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		for _, r := range receipts {
			stored, err := findAnswer(ctx, tx, by.Tenant, r)
			if err != nil {
				return err
			}
			if stored != nil {
				answer = *stored
				return nil
			}
		}
		result, err := Run(ctx, tx, by, c, handle)
		if err != nil {
			return err
		}
		if answer, err = encode(result); err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		return m.keepAnswer(ctx, tx, by.Tenant, receipts, answer)
	})
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

const selectAnswer = `SELECT request, status, answer FROM posthorn_idempotency WHERE tenant = ? AND key = ?`

func findAnswer(ctx context.Context, tx *outbox.Tx, tenant outbox.TenantID, r Receipt) (*Answer, error) {
	find, err := tx.Stmt(ctx, selectAnswer)
	if err != nil {
		return nil, fmt.Errorf("find stored answer: %w", err)
	}
	var request []byte
	answer := Answer{Replayed: true}
	err = find.QueryRowContext(ctx, string(tenant), r.Key).Scan(&request, &answer.Status, &answer.Body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find stored answer: %w", err)
	case string(request) == string(r.Request[:]):
		return &answer, nil
	case r.Strict:
		return nil, &Refusal{Kind: Invalid, Code: "idempotency-key-reused",
			Sentence: "This Idempotency-Key came with another request before.",
			Hint:     "Use a new key for a new request, and the same key only to repeat one."}
	}
	return nil, nil
}

const insertAnswer = `INSERT INTO posthorn_idempotency(tenant, key, request, status, answer, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`

// A few old answers go with each new one, so that no upkeep is needed and no command pays for many.
const deleteAnswers = `DELETE FROM posthorn_idempotency WHERE (tenant, key) IN
(SELECT tenant, key FROM posthorn_idempotency WHERE created_at < ? ORDER BY created_at LIMIT 8)`

func (m *Mediator) keepAnswer(ctx context.Context, tx *outbox.Tx, tenant outbox.TenantID, receipts []Receipt, answer Answer) error {
	if len(receipts) == 0 {
		return nil
	}
	now := tx.Now.UnixMicro()
	for _, r := range receipts {
		insert, err := tx.Stmt(ctx, insertAnswer)
		if err != nil {
			return fmt.Errorf("store answer: %w", err)
		}
		if _, err := insert.ExecContext(ctx, string(tenant), r.Key, r.Request[:], answer.Status, answer.Body, now); err != nil {
			return fmt.Errorf("store answer: %w", err)
		}
	}
	forget, err := tx.Stmt(ctx, deleteAnswers)
	if err != nil {
		return fmt.Errorf("forget old answers: %w", err)
	}
	if _, err := forget.ExecContext(ctx, tx.Now.Add(-m.keep).UnixMicro()); err != nil {
		return fmt.Errorf("forget old answers: %w", err)
	}
	return nil
}

const deleteExpired = `DELETE FROM posthorn_idempotency WHERE (tenant, key) IN
(SELECT tenant, key FROM posthorn_idempotency WHERE created_at < ? ORDER BY created_at LIMIT ?)`

// ForgetAnswers removes up to limit answers that are older than they are kept, and says how many: for the upkeep of a store whose callers
// have become quiet.
func (m *Mediator) ForgetAnswers(ctx context.Context, limit int) (forgotten int64, err error) {
	err = m.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		result, err := tx.Tx.Tx.ExecContext(ctx, deleteExpired, tx.Now.Add(-m.keep).UnixMicro(), limit)
		if err != nil {
			return err
		}
		forgotten, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget old answers: %w", err)
	}
	return forgotten, nil
}

// Fingerprint hashes the parts of a request, each with its length, so that no two requests have one hash.
func Fingerprint(parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
