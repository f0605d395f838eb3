package lending_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/outbox"
)

// desk goes on with the story from wherever it stands: m2 reserves what m1 has, m1 brings it back, m2 is told and collects it. A process
// that was killed may have done the next thing already, or not.
func (b *bed) desk(t testing.TB) {
	t.Helper()
	must := func(err error, unless ...string) {
		t.Helper()
		if err != nil && !contains(unless, code(err)) {
			t.Fatal(err)
		}
	}
	_, err := b.RegisterMember(clerk(t.Context()), lending.RegisterMember{ID: "m1", Name: "Member m1", Email: "m1@example.org"}, nil)
	must(err, "member-exists")
	_, err = b.RegisterMember(clerk(t.Context()), lending.RegisterMember{ID: "m2", Name: "Member m2", Email: "m2@example.org"}, nil)
	must(err, "member-exists")
	_, err = b.AddCopy(clerk(t.Context()), lending.AddCopy{ID: "c1", Work: "moby-dick", Title: "Moby-Dick"}, nil)
	must(err, "copy-exists")
	if b.count(t, `SELECT count(*) FROM lending_loans`) == 0 {
		_, err = b.borrow(t, "m1", "c1")
		must(err)
	}
	if b.count(t, `SELECT count(*) FROM lending_reservations`) == 0 {
		_, err = b.reserve(t, "m2", "moby-dick")
		must(err)
	}
	if b.count(t, `SELECT count(*) FROM lending_loans WHERE member = 'm1' AND returned_at IS NULL`) == 1 {
		must(b.giveBack(t, "c1"))
	}
	if b.count(t, `SELECT count(*) FROM lending_loans WHERE member = 'm2'`) == 0 {
		eventually(t, "the member is told that the copy is ready", func() bool { return b.provider.notices()["pickup Member m2"] > 0 })
		var id string
		if err := b.store.Read.DB.QueryRow(`SELECT id FROM lending_reservations`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		_, err := b.Collect(clerk(t.Context()), lending.Collect{Reservation: id}, nil)
		must(err)
	}
	b.settled(t)
}

func contains(list []string, text string) bool {
	for _, entry := range list {
		if entry == text {
			return true
		}
	}
	return false
}

// settled waits until nothing is pending but the step that is scheduled.
func (b *bed) settled(t testing.TB) {
	t.Helper()
	eventually(t, "everything that is due is delivered", func() bool {
		// One that waits for its next attempt is not settled, whenever that will be; one that was scheduled is not due.
		return b.count(t, `SELECT count(*) FROM outbox_deliveries d JOIN outbox_messages m ON m.seq = d.seq
			WHERE d.state IN ('pending', 'processing') AND d.handler <> 'unrouted' AND coalesce(m.deliver_at, 0) <= ?`, b.now().UnixMicro()) == 0
	})
}

// fulfilled holds that each thing of the story happened once, whatever came twice.
func (b *bed) fulfilled(t testing.TB, at string) {
	t.Helper()
	for query, want := range map[string]int{
		`SELECT count(*) FROM lending_loans`:                                                                2,
		`SELECT count(*) FROM lending_loans WHERE member = 'm1' AND returned_at IS NOT NULL`:                1,
		`SELECT count(*) FROM lending_loans WHERE member = 'm2' AND returned_at IS NULL`:                    1,
		`SELECT count(*) FROM lending_reservations`:                                                         1,
		`SELECT count(*) FROM lending_reservations WHERE state = 'collected' AND notified_at IS NOT NULL`:   1,
		`SELECT count(*) FROM lending_copies WHERE state = 'loan'`:                                          1,
		`SELECT sum(borrowed) FROM lending_statistics`:                                                      2,
		`SELECT sum(returned) FROM lending_statistics`:                                                      1,
		`SELECT count(*) FROM outbox_messages WHERE type = 'loan-borrowed'`:                                 2,
		`SELECT count(*) FROM outbox_messages WHERE type = 'loan-returned'`:                                 1,
		`SELECT count(*) FROM outbox_messages WHERE kind = 'journey-step'`:                                  3,
		`SELECT count(*) FROM outbox_messages WHERE kind = 'provider-effect'`:                               3,
		`SELECT count(*) FROM outbox_deliveries WHERE state = 'dead-letter'`:                                0,
		`SELECT count(*) FROM outbox_messages WHERE type IN ('popular-shelf', 'refresh-the-popular-shelf')`: 0,
	} {
		if got := b.count(t, query); got != want {
			t.Errorf("%s: %s: %d, want %d", at, query, got, want)
		}
	}
}

// TestAJourneySurvivesAKillBetweenAnyTwoSteps takes the database as each commit left it, as a kill right after that commit would, and goes
// on from there in a process of its own: nothing is lost, and nothing happens twice.
func TestAJourneySurvivesAKillBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	set := settings(t, map[string]string{"lending-loan-borrowed-version": "2"})
	b := openBed(t, filepath.Join(folder, "posthorn.db"), set)
	// What the provider had been told by then is the outside world's, and outlives the kill.
	type moment struct {
		path string
		told map[outbox.MessageID]string
	}
	var mu sync.Mutex
	var moments []moment
	b.store.Writer.OnCommit(func() {
		mu.Lock()
		defer mu.Unlock()
		path := filepath.Join(folder, fmt.Sprintf("after-%03d.db", len(moments)))
		for _, suffix := range []string{"", "-wal"} {
			text, err := os.ReadFile(filepath.Join(folder, "posthorn.db") + suffix)
			if err == nil {
				err = os.WriteFile(path+suffix, text, 0o600)
			}
			if err != nil {
				t.Errorf("copy database: %v", err)
			}
		}
		b.provider.mu.Lock()
		defer b.provider.mu.Unlock()
		told := map[outbox.MessageID]string{}
		for id, what := range b.provider.told {
			told[id] = what
		}
		moments = append(moments, moment{path, told})
	})
	b.dispatcher(t, true)
	b.desk(t)
	b.fulfilled(t, "without a kill")
	if got := b.provider.notices(); got["pickup Member m2"] != 1 || got["due Member m1"] != 1 || got["due Member m2"] != 1 || len(got) != 3 {
		t.Errorf("notices: %v", got)
	}
	mu.Lock()
	killed := moments
	mu.Unlock()
	if len(killed) < 15 {
		t.Fatalf("only %d commits", len(killed))
	}
	for i, m := range killed {
		next := openBed(t, m.path, set)
		next.provider.told = m.told
		next.dispatcher(t, true)
		next.desk(t)
		at := fmt.Sprintf("killed after commit %d of %d", i+1, len(killed))
		next.fulfilled(t, at)
		if got := next.provider.notices(); got["pickup Member m2"] != 1 || got["due Member m1"] != 1 || got["due Member m2"] != 1 || len(got) != 3 {
			t.Errorf("%s: notices: %v", at, got)
		}
		if err := next.store.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatIsNotCollectedGoesToTheNext lets the pick-up time pass: the scheduled step ends the reservation and holds the copy for the next.
func TestWhatIsNotCollectedGoesToTheNext(t *testing.T) {
	t.Parallel()
	b := newBed(t, map[string]string{"lending-pickup-time": "7d"})
	b.dispatcher(t, true)
	b.members(t, "m1", "m2", "m3")
	b.copies(t, "moby-dick", "c1")
	if _, err := b.borrow(t, "m1", "c1"); err != nil {
		t.Fatal(err)
	}
	first, err := b.reserve(t, "m2", "moby-dick")
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.reserve(t, "m3", "moby-dick")
	if err != nil {
		t.Fatal(err)
	}
	if first.Position.Number != 1 || second.Position.Number != 2 || second.Position.Freshness.Mode != "advisory" ||
		second.Position.Freshness.Authority != "journeys/fulfil-a-reservation" || second.Freshness.Mode != "immediate" {
		t.Errorf("places: %+v, %+v", first.Position, second.Position)
	}
	if err := b.giveBack(t, "c1"); err != nil {
		t.Fatal(err)
	}
	state := func(id string) string {
		r, err := b.Reservation(clerk(t.Context()), id)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	eventually(t, "the first is told", func() bool { return state(first.ID) == "ready" && b.provider.notices()["pickup Member m2"] == 1 })
	if _, err := b.borrow(t, "m3", "c1"); code(err) != "copy-held" {
		t.Errorf("somebody else takes it: %v", err)
	}
	b.settled(t)
	if state(first.ID) != "ready" {
		t.Error("it expired before its time")
	}
	b.later(8 * 24 * time.Hour)
	eventually(t, "the second is told", func() bool {
		return state(first.ID) == "expired" && state(second.ID) == "ready" && b.provider.notices()["pickup Member m3"] == 1
	})
	if _, err := b.borrow(t, "m3", "c1"); err != nil || state(second.ID) != "collected" {
		t.Errorf("the second borrows it: %v, %s", err, state(second.ID))
	}
	// The scheduled step of the second comes when all is over, and changes nothing.
	b.later(8 * 24 * time.Hour)
	b.settled(t)
	if state(second.ID) != "collected" || b.count(t, `SELECT count(*) FROM outbox_deliveries WHERE state = 'dead-letter'`) != 0 {
		t.Errorf("after all: %s", state(second.ID))
	}
}
