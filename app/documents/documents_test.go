package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/mediator"
)

func put(id, body string, ifVersion *int64) documents.Change {
	return documents.Change{Op: documents.Put, Collection: "orders", ID: id, Body: json.RawMessage(body), IfVersion: ifVersion}
}

func remove(id string, ifVersion *int64) documents.Change {
	return documents.Change{Op: documents.Delete, Collection: "orders", ID: id, IfVersion: ifVersion}
}

func emit(id, payload string) emits.Emit {
	e := emits.Emit{Type: "order-placed", Payload: json.RawMessage(payload)}
	if id != "" {
		e.ID = &id
	}
	return e
}

// transact runs a transaction that must succeed.
func (b *bed) transact(t *testing.T, tx documents.Transaction) (documents.Outcome, mediator.Answer) {
	t.Helper()
	answer, err := b.Transact(b.ctx, tx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out documents.Outcome
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out, answer
}

func TestVersionsCountOverADeletion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	body := `{ "n": 12345678901234567890, "n": 1e400 }`
	for i, step := range []struct {
		change documents.Change
		want   int64
	}{
		{put("1", `1`, ptr(int64(0))), 1},
		{put("1", `2`, ptr(int64(1))), 2},
		{remove("1", ptr(int64(2))), 3},
		{put("1", body, ptr(int64(0))), 4},
	} {
		out, _ := b.transact(t, documents.Transaction{Changes: []documents.Change{step.change}})
		if out.Documents[0].Version != step.want {
			t.Errorf("step %d left version %d, want %d", i, out.Documents[0].Version, step.want)
		}
	}
	found, err := b.Get(b.ctx, documents.Get{Collection: "orders", ID: "1"})
	if err != nil || string(found.Body) != body || found.Version != 4 || found.Freshness != mediator.Immediate {
		t.Errorf("read back %s version %d, %v", found.Body, found.Version, err)
	}
}

// TestRefusalsChangeNothing sends each bad transaction after a good change of its own, which must be undone with it.
func TestRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.transact(t, documents.Transaction{Changes: []documents.Change{put("1", `1`, nil)}, Emits: []emits.Emit{emit("taken", `{"order":1}`)}})
	before := b.rows(t)
	for _, c := range []struct {
		name string
		tx   documents.Transaction
		code string
	}{
		{"wrong version", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil), put("1", `2`, ptr(int64(7)))}}, "version-conflict"},
		{"exists", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil), put("1", `2`, ptr(int64(0)))}}, "version-conflict"},
		{"delete nothing", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil), remove("3", nil)}}, "no-document"},
		{"undeclared", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil)}, Emits: []emits.Emit{{Type: "x", Payload: []byte(`1`)}}}, "undeclared-type"},
		{"undeclared version", documents.Transaction{Emits: []emits.Emit{{Type: "order-placed", SchemaVersion: ptr(2), Payload: []byte(`1`)}}}, "undeclared-type"},
		{"payload against its schema", documents.Transaction{Emits: []emits.Emit{emit("", `{"order":"no"}`)}}, "invalid-payload"},
		{"taken id", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil)}, Emits: []emits.Emit{emit("taken", `{"order":2}`)}}, "duplicate-id"},
		{"taken id, equal content, other changes", documents.Transaction{Changes: []documents.Change{put("2", `2`, nil)}, Emits: []emits.Emit{emit("taken", `{"order":1}`)}}, "duplicate-id"},
		{"id twice", documents.Transaction{Emits: []emits.Emit{emit("new", `{"order":2}`), emit("new", `{"order":2}`)}}, "duplicate-id"},
		{"one of two taken", documents.Transaction{Emits: []emits.Emit{emit("taken", `{"order":1}`), emit("new", `{"order":2}`)}}, "duplicate-id"},
		{"empty", documents.Transaction{}, "invalid"},
		{"dots", documents.Transaction{Changes: []documents.Change{put("..", `2`, nil)}}, "invalid"},
		{"too many", documents.Transaction{Changes: make([]documents.Change, 101)}, "invalid"},
		{"large payload", documents.Transaction{Emits: []emits.Emit{emit("", `"`+strings.Repeat("x", 1<<20)+`"`)}}, "payload-too-large"},
	} {
		_, err := b.Transact(b.ctx, c.tx, nil)
		if got := codeOf(err); got != c.code {
			t.Errorf("%s: answered %q (%v), want %q", c.name, got, err, c.code)
		}
		if after := b.rows(t); after != before {
			t.Errorf("%s: %d rows and versions before, %d after", c.name, before, after)
		}
	}
}

func codeOf(err error) string {
	var conflict *documents.VersionConflict
	var refusal *mediator.Refusal
	switch {
	case errors.As(err, &conflict):
		return "version-conflict"
	case errors.As(err, &refusal):
		return refusal.Code
	}
	return fmt.Sprint(err)
}

func TestARepetitionIsAnsweredLikeTheFirst(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	withChange := documents.Transaction{Changes: []documents.Change{put("1", `1`, nil)}, Emits: []emits.Emit{emit("a", `{"order":1}`)}}
	emitOnly := documents.Transaction{Emits: []emits.Emit{emit("b", `{"order":1}`)}}
	keyed := documents.Transaction{Changes: []documents.Change{put("1", `1`, nil)}}
	receipt := mediator.KeyReceipt("k", mediator.Fingerprint([]byte("request")))
	for _, c := range []struct {
		name    string
		tx      documents.Transaction
		receipt *mediator.Receipt
	}{{"message id with changes", withChange, nil}, {"message id alone", emitOnly, nil}, {"idempotency key", keyed, &receipt}} {
		first, err := b.Transact(b.ctx, c.tx, c.receipt)
		if err != nil || first.Replayed {
			t.Fatalf("%s: %+v, %v", c.name, first, err)
		}
		before := b.rows(t)
		again, err := b.Transact(b.ctx, c.tx, c.receipt)
		if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
			t.Errorf("%s: first %s, again %s replayed %v, %v", c.name, first.Body, again.Body, again.Replayed, err)
		}
		if after := b.rows(t); after != before {
			t.Errorf("%s: the repetition changed rows: %d, then %d", c.name, before, after)
		}
	}
	other := mediator.KeyReceipt("k", mediator.Fingerprint([]byte("another request")))
	if _, err := b.Transact(b.ctx, keyed, &other); codeOf(err) != "idempotency-key-reused" {
		t.Errorf("another request under the key: %v", err)
	}
}

func TestTenantsAndRolesAreKeptApart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.transact(t, documents.Transaction{Changes: []documents.Change{put("1", `1`, nil)}, Emits: []emits.Emit{emit("a", `{"order":1}`)}})
	other := as(t.Context(), "other", access.Operator)
	if _, err := b.Get(other, documents.Get{Collection: "orders", ID: "1"}); codeOf(err) != "unknown-collection" {
		t.Errorf("another tenant's document: %v", err)
	}
	if _, err := b.Transact(other, documents.Transaction{Emits: []emits.Emit{emit("a", `{"order":9}`)}}, nil); err != nil {
		t.Errorf("an id that another tenant has: %v", err)
	}
	viewer := as(t.Context(), "main", access.Viewer)
	if _, err := b.Transact(viewer, documents.Transaction{Changes: []documents.Change{put("1", `1`, nil)}}, nil); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("a viewer writes: %v", err)
	}
	if _, err := b.Get(t.Context(), documents.Get{Collection: "orders", ID: "1"}); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("nobody reads: %v", err)
	}
}

func TestPagesHoldEveryDocumentOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var changes []documents.Change
	for i := range 90 {
		changes = append(changes, put(fmt.Sprintf("%03d", i), `{}`, nil))
	}
	changes = append(changes, remove("007", nil))
	b.transact(t, documents.Transaction{Changes: changes})
	var ids []string
	cursor := ""
	for {
		page, err := b.List(b.ctx, documents.List{Collection: "orders", Limit: 20, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Documents {
			ids = append(ids, d.ID)
		}
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	if len(ids) != 89 || ids[0] != "000" || ids[88] != "089" || ids[7] != "008" {
		t.Errorf("%d documents over all pages: %v", len(ids), ids)
	}
}
