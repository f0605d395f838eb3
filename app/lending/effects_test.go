package lending_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// TestTheBranchAgreesWithItsRecords is what a start checks.
func TestTheBranchAgreesWithItsRecords(t *testing.T) {
	t.Parallel()
	set := settings(t, nil)
	if err := set.Check(); err != nil {
		t.Error(err)
	}
	if err := mediator.Check(set, lending.UseCases()); err != nil {
		t.Error(err)
	}
}

// TestAnEventThatComesTwiceCountsOnce has an operator send each event again to the handlers that had it.
func TestAnEventThatComesTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.dispatcher(t, true)
	b.members(t, "m1")
	b.copies(t, "moby-dick", "c1")
	if _, err := b.borrow(t, "m1", "c1"); err != nil {
		t.Fatal(err)
	}
	if err := b.giveBack(t, "c1"); err != nil {
		t.Fatal(err)
	}
	b.settled(t)
	// The same deliveries once more, as a crash after the handler's commit, or an operator, would bring them.
	again := func() int {
		var n int64
		err := b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
			result, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO outbox_deliveries(seq, handler, tenant, next_attempt_at, blocked, resend_of, created_at)
				SELECT seq, handler, tenant, 0, 0, id, created_at FROM outbox_deliveries WHERE state = 'dispatched' AND resend_of IS NULL`)
			if err != nil {
				return err
			}
			n, err = result.RowsAffected()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	if n := again(); n < 4 {
		t.Fatalf("%d deliveries", n)
	}
	d.Wake()
	b.settled(t)
	if got := b.count(t, `SELECT sum(borrowed) * 10 + sum(returned) FROM lending_statistics`); got != 11 {
		t.Errorf("counted %d", got)
	}
	if got := b.provider.notices(); got["due Member m1"] != 1 || len(got) != 1 {
		t.Errorf("notices: %v", got)
	}
	if got := b.count(t, `SELECT count(*) FROM outbox_deliveries WHERE suppressed = 1`); got != 3 {
		t.Errorf("%d deliveries were suppressed, want those of the two counts and the reminder", got)
	}
}

// TestBothVersionsAreReadAndTheSettingSaysWhichIsWritten borrows under both settings.
func TestBothVersionsAreReadAndTheSettingSaysWhichIsWritten(t *testing.T) {
	t.Parallel()
	for version, fields := range map[string]int{"1": 6, "2": 8} {
		b := newBed(t, map[string]string{"lending-loan-borrowed-version": version})
		b.dispatcher(t, true)
		b.members(t, "m1")
		b.copies(t, "moby-dick", "c1")
		if _, err := b.borrow(t, "m1", "c1"); err != nil {
			t.Fatal(err)
		}
		b.settled(t)
		var wrote, text string
		if err := b.store.Read.DB.QueryRow(`SELECT schema_version, payload FROM outbox_messages WHERE type = 'loan-borrowed'`).Scan(&wrote, &text); err != nil {
			t.Fatal(err)
		}
		var payload map[string]any
		if err := json.Unmarshal([]byte(text), &payload); err != nil || wrote != version || len(payload) != fields {
			t.Errorf("setting %s: version %s with %d fields, %v", version, wrote, len(payload), err)
		}
		if b.count(t, `SELECT sum(borrowed) FROM lending_statistics`) != 1 || b.provider.notices()["due Member m1"] != 1 {
			t.Errorf("version %s was not read", version)
		}
	}
}

// TestTheShelfIsRefreshedFromMemory: the excluded reaction runs after the commit and stages nothing; what is lost is repeated by hand.
func TestTheShelfIsRefreshedFromMemory(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.dispatcher(t, false)
	b.members(t, "m1")
	b.copies(t, "moby-dick", "c1")
	messages := func() int { return b.count(t, `SELECT count(*) FROM outbox_messages`) }
	if _, err := b.borrow(t, "m1", "c1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shelf follows", func() bool { return b.count(t, `SELECT count(*) FROM lending_shelf WHERE work = 'moby-dick'`) == 1 })
	if got := messages(); got != 1 {
		t.Errorf("%d messages, want that of the loan alone", got)
	}
	// A process that ends before the reaction loses it.
	b.Close()
	if err := b.giveBack(t, "c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.borrow(t, "m1", "c1"); err != nil {
		t.Fatal(err)
	}
	if got := b.count(t, `SELECT loans FROM lending_shelf`); got != 1 {
		t.Fatalf("the shelf counts %d", got)
	}
	before := messages()
	shelf, err := b.RefreshShelf(clerk(t.Context()))
	if err != nil || len(shelf.Works) != 1 || shelf.Works[0].Loans != 2 || shelf.Freshness.Mode != "advisory" || messages() != before {
		t.Errorf("by hand: %+v, %v; %d messages", shelf, err, messages()-before)
	}
	if _, err := b.RefreshShelf(access.With(t.Context(), access.Principal{Actor: "token:guest", Tenant: outbox.MainTenant, Role: access.Viewer})); err == nil {
		t.Error("a viewer refreshed it")
	}
}

// TestStepsRunThroughTheMediator: what no step can be is refused, permanently, and who acted is the journey.
func TestStepsRunThroughTheMediator(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.dispatcher(t, true)
	stage := func(payload string) outbox.MessageID {
		var m outbox.Message
		err := b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) (err error) {
			m, err = outbox.Stage(ctx, tx, outbox.Message{Kind: outbox.JourneyStep, Type: "reservation-hold-copy", Payload: []byte(payload)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	for _, payload := range []string{`[]`, `{"copy":"no such number!"}`, `{"copy":"c9"}`} {
		id := stage(payload)
		eventually(t, payload+" is a dead letter after one attempt", func() bool {
			return b.count(t, `SELECT count(*) FROM outbox_records WHERE id = ? AND state = 'dead-letter' AND failure_class = 'rejected' AND attempt = 1`, string(id)) == 1
		})
	}
}
