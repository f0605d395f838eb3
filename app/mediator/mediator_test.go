package mediator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// rename is a command whose steps are noted.
type rename struct {
	steps           *[]string
	invalid, denied error
}

func (r rename) UseCase() mediator.UseCase {
	return mediator.UseCase{Record: "use-cases/rename-a-member", Emits: []string{"member-renamed", "member-lost"}}
}

func (r rename) Validate() error {
	*r.steps = append(*r.steps, "validate")
	return r.invalid
}

func (r rename) Authorize(access.Principal) error {
	*r.steps = append(*r.steps, "authorize")
	return r.denied
}

func newStore(t *testing.T) (*store.Store, *mediator.Mediator) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "posthorn.db"), Schema: string(schema), SchemaVersion: outbox.SchemaVersion, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	err = db.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "member-renamed", SchemaVersion: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	return db, mediator.New(mediator.Config{Writer: db.Writer, Read: db.Read})
}

func count(t *testing.T, db *store.Store, table string) (n int) {
	t.Helper()
	if err := db.Read.DB.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const change = `INSERT INTO documents(tenant, collection, id, version, body, changed_at) VALUES ('far', 'members', '1', 1, x'7b7d', 0)`

func TestACommandPassesEveryStepInOrder(t *testing.T) {
	t.Parallel()
	db, m := newStore(t)
	errBad, errMay, errHandler := errors.New("bad"), errors.New("may not"), errors.New("handler")
	caller := access.With(t.Context(), access.Principal{Actor: "token:x", Tenant: "far", Role: access.Operator})
	for _, c := range []struct {
		name       string
		ctx        context.Context
		command    rename
		handlerErr error
		message    string
		want       error
		steps      []string
	}{
		{"nobody", t.Context(), rename{}, nil, "member-renamed", access.ErrUnauthenticated, nil},
		{"invalid", caller, rename{invalid: errBad}, nil, "member-renamed", errBad, []string{"validate"}},
		{"denied", caller, rename{denied: errMay}, nil, "member-renamed", errMay, []string{"validate", "authorize"}},
		{"handler refuses", caller, rename{}, errHandler, "member-renamed", errHandler, []string{"validate", "authorize", "handle"}},
		{"message refused", caller, rename{}, nil, "member-lost", outbox.ErrUndeclaredType, []string{"validate", "authorize", "handle"}},
		{"done", caller, rename{}, nil, "member-renamed", nil, []string{"validate", "authorize", "handle", "committed"}},
	} {
		var steps []string
		c.command.steps = &steps
		raised, err := mediator.Send(mediator.WithOrigin(c.ctx, map[string]string{"correlation": "r"}), m, c.command,
			func(ctx context.Context, work *mediator.UnitOfWork, _ rename) (*mediator.Raised, error) {
				steps = append(steps, "handle")
				if _, err := work.Tx.Tx.Tx.ExecContext(ctx, change); err != nil {
					return nil, err
				}
				work.AfterCommit(func() { steps = append(steps, "committed") })
				return work.Raise(outbox.Message{Type: c.message, Payload: []byte(`{}`)}), c.handlerErr
			})
		if !errors.Is(err, c.want) || !slices.Equal(steps, c.steps) {
			t.Errorf("%s: %v after %v, want %v after %v", c.name, err, steps, c.want, c.steps)
		}
		changes, staged := count(t, db, "documents"), count(t, db, "outbox_messages")
		if done := c.want == nil; done != (changes == 1) || done != (staged == 1) || done != (raised != nil) {
			t.Errorf("%s: %d changes, %d messages, result %v", c.name, changes, staged, raised)
		}
		if raised != nil && (raised.Tenant != "far" || raised.Deliveries != 1 || raised.ID == "" || raised.Headers["correlation"] != "r") {
			t.Errorf("%s: raised %+v", c.name, raised)
		}
	}
}

// TestAStoredAnswerIsOfItsTenant sends one key from two tenants.
func TestAStoredAnswerIsOfItsTenant(t *testing.T) {
	t.Parallel()
	_, m := newStore(t)
	receipt := []mediator.Receipt{mediator.KeyReceipt("k", mediator.Fingerprint([]byte("same")))}
	for i, tenant := range []outbox.TenantID{"a", "b", "a"} {
		ctx := access.With(t.Context(), access.Principal{Actor: "token:x", Tenant: tenant, Role: access.Operator})
		answer, err := mediator.SendOnce(ctx, m, receipt, rename{steps: new([]string)},
			func(_ context.Context, work *mediator.UnitOfWork, _ rename) (string, error) {
				return string(work.By.Tenant), nil
			},
			func(s string) (mediator.Answer, error) { return mediator.Answer{Status: 201, Body: []byte(s)}, nil })
		if err != nil || string(answer.Body) != string(tenant) || answer.Replayed != (i == 2) {
			t.Errorf("%d: %+v, %v", i, answer, err)
		}
	}
}

func TestFingerprintsTellPartsApart(t *testing.T) {
	t.Parallel()
	if mediator.Fingerprint([]byte("ab"), []byte("c")) == mediator.Fingerprint([]byte("a"), []byte("bc")) {
		t.Error("two requests have one hash")
	}
}
