package lending_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

const whsec = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// provider stands for whoever sends the notices: it keeps what it was told, and under which keys.
type provider struct {
	mu   sync.Mutex
	told map[outbox.MessageID]string
}

func (p *provider) deliver(_ context.Context, d outbox.Delivery) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n lending.Notice
	if err := json.Unmarshal(d.Message.Payload, &n); err != nil {
		return outbox.Permanent(err)
	}
	if p.told == nil {
		p.told = map[outbox.MessageID]string{}
	}
	p.told[d.Message.ID] = n.About + " " + n.Name
	return nil
}

// notices counts what went out, repeats suppressed by their key.
func (p *provider) notices() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]int{}
	for _, what := range p.told {
		found[what]++
	}
	return found
}

// bed is the branch on a real store, with a clock that can be put forward.
type bed struct {
	*lending.Module
	store    *store.Store
	set      *records.Set
	inbound  *inbound.Module
	provider *provider

	mu      sync.Mutex
	ahead   time.Duration
	changes []lending.Change
}

func (b *bed) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.ahead)
}

func (b *bed) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

func schema(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func settings(t testing.TB, override map[string]string) *records.Set {
	t.Helper()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]records.Override{}
	for id, value := range override {
		values[id] = records.Override{Value: records.Scalar(value), Observation: "test"}
	}
	if err := set.Override(values); err != nil {
		t.Fatal(err)
	}
	return set
}

func newBed(t testing.TB, override map[string]string) *bed {
	t.Helper()
	return openBed(t, filepath.Join(t.TempDir(), "posthorn.db"), settings(t, override))
}

func openBed(t testing.TB, path string, set *records.Set) *bed {
	t.Helper()
	b := &bed{set: set, provider: &provider{}}
	var err error
	b.store, err = store.Open(t.Context(), store.Options{Path: path, Schema: schema(t), SchemaVersion: outbox.SchemaVersion, Create: true, Writer: outbox.WriterConfig{Now: b.now}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close(context.Background()) })
	var types []outbox.TypeVersion
	for _, event := range set.IntegrationEvents() {
		for _, version := range event.Reads() {
			types = append(types, outbox.TypeVersion{Type: event.ID, SchemaVersion: version})
		}
	}
	err = b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		if err := outbox.DeclareTypes(ctx, tx, types); err != nil {
			return err
		}
		return outbox.DeclareReads(ctx, tx, "test", lending.Readers().Declare(types))
	})
	if err != nil {
		t.Fatal(err)
	}
	m := mediator.New(mediator.Config{Writer: b.store.Writer, Read: b.store.Read, UseCases: lending.UseCases()})
	current := func() *records.Set { return set }
	b.Module = lending.New(lending.Config{Mediator: m, Records: current, Observe: func(_ outbox.TenantID, c lending.Change) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changes = append(b.changes, c)
	}})
	t.Cleanup(b.Module.Close)
	b.inbound, err = inbound.New(m, current, map[string]inbound.Source{"accounts": {Secret: whsec}}, b.Receivers())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dispatcher prepares the delivery of what the branch stages; start begins it.
func (b *bed) dispatcher(t testing.TB, start bool) *outbox.Dispatcher {
	t.Helper()
	d, err := outbox.NewDispatcher(outbox.Config{Writer: b.store.Writer, Read: b.store.Read, Now: b.now, Poll: 50 * time.Millisecond,
		Retry: outbox.RetryPolicy{First: 10 * time.Millisecond, Cap: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range b.Handlers(b.provider.deliver) {
		if err := d.Register(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if !start {
		err = d.Prepare(t.Context())
	} else if err = d.Start(t.Context()); err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = d.Stop(ctx)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// clerk is who asks.
func clerk(ctx context.Context) context.Context {
	return access.With(ctx, access.Principal{Actor: "token:clerk", Tenant: outbox.MainTenant, Role: access.Operator})
}

// as reads an answer.
func as[T any](t testing.TB, a mediator.Answer, err error) T {
	t.Helper()
	var v T
	if err == nil {
		err = json.Unmarshal(a.Body, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// code is the stable code of a refusal; "" without one.
func code(err error) string {
	refusal := new(mediator.Refusal)
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (b *bed) count(t testing.TB, query string, args ...any) (n int) {
	t.Helper()
	if err := b.store.Read.DB.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// members registers members, and copies puts copies of works on the shelf: "c1 moby-dick".
func (b *bed) members(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := b.RegisterMember(clerk(t.Context()), lending.RegisterMember{ID: id, Name: "Member " + id, Email: id + "@example.org"}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bed) copies(t testing.TB, work string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := b.AddCopy(clerk(t.Context()), lending.AddCopy{ID: id, Work: work, Title: "The " + work}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bed) borrow(t testing.TB, member, copied string) (lending.Loan, error) {
	t.Helper()
	a, err := b.Borrow(clerk(t.Context()), lending.Borrow{Member: member, Copy: copied}, nil)
	if err != nil {
		return lending.Loan{}, err
	}
	return as[lending.Loan](t, a, nil), nil
}

func (b *bed) reserve(t testing.TB, member, work string) (lending.Reservation, error) {
	t.Helper()
	a, err := b.Reserve(clerk(t.Context()), lending.Reserve{Member: member, Work: work}, nil)
	if err != nil {
		return lending.Reservation{}, err
	}
	return as[lending.Reservation](t, a, nil), nil
}

func (b *bed) giveBack(t testing.TB, copied string) error {
	t.Helper()
	_, err := b.Return(clerk(t.Context()), lending.Return{Copy: copied}, nil)
	return err
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 12000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}
