package lending_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/lending"
)

// TestRules goes through every rule: what is forbidden has a stable code and changes nothing; what is allowed is done.
func TestRules(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	limits := map[string]string{"lending-loan-limit": "2", "lending-reservation-limit": "1", "lending-renewal-limit": "1", "lending-loan-period": "28d", "lending-overdue-grace": "1d"}
	type act func(t *testing.T, b *bed) error
	borrow := func(member, copied string) act {
		return func(t *testing.T, b *bed) error { _, err := b.borrow(t, member, copied); return err }
	}
	reserve := func(member, work string) act {
		return func(t *testing.T, b *bed) error { _, err := b.reserve(t, member, work); return err }
	}
	giveBack := func(copied string) act { return func(t *testing.T, b *bed) error { return b.giveBack(t, copied) } }
	later := func(d time.Duration) act { return func(_ *testing.T, b *bed) error { b.later(d); return nil } }
	suspend := func(member string) act {
		return func(t *testing.T, b *bed) error { return b.event(t, "member-suspended", member, b.now()) }
	}
	reinstate := func(member string) act {
		return func(t *testing.T, b *bed) error { return b.event(t, "member-reinstated", member, b.now()) }
	}
	// renew, collect and cancel name the latest loan or reservation.
	latest := func(t *testing.T, b *bed, table string) (id string) {
		if err := b.store.Read.DB.QueryRow(`SELECT id FROM ` + table + ` ORDER BY rowid_or_time DESC LIMIT 1`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	loans, reservations := `(SELECT id, borrowed_at AS rowid_or_time FROM lending_loans)`, `(SELECT id, place AS rowid_or_time FROM lending_reservations)`
	renew := func(t *testing.T, b *bed) error {
		_, err := b.Renew(clerk(t.Context()), lending.Renew{Loan: latest(t, b, loans)}, nil)
		return err
	}
	collect := func(t *testing.T, b *bed) error {
		_, err := b.Collect(clerk(t.Context()), lending.Collect{Reservation: latest(t, b, reservations)}, nil)
		return err
	}
	cancel := func(t *testing.T, b *bed) error {
		_, err := b.Cancel(clerk(t.Context()), lending.Cancel{Reservation: latest(t, b, reservations)}, nil)
		return err
	}
	for _, c := range []struct {
		name   string
		before []act
		last   act
		want   string // empty: it is done
	}{
		{"borrow", nil, borrow("m1", "c1"), ""},
		{"borrow, member unknown", nil, borrow("m9", "c1"), "unknown-member"},
		{"borrow, copy unknown", nil, borrow("m1", "c9"), "unknown-copy"},
		{"borrow, member number malformed", nil, borrow("m 1", "c1"), "invalid"},
		{"borrow what is on loan", []act{borrow("m1", "c1")}, borrow("m2", "c1"), "copy-on-loan"},
		{"borrow up to the limit", []act{borrow("m1", "c1")}, borrow("m1", "d1"), ""},
		{"borrow over the limit", []act{borrow("m1", "c1"), borrow("m1", "d1")}, borrow("m1", "d2"), "loan-limit"},
		{"borrow after returning", []act{borrow("m1", "c1"), borrow("m1", "d1"), giveBack("c1")}, borrow("m1", "d2"), ""},
		{"borrow while overdue", []act{borrow("m1", "c1"), later(30 * day)}, borrow("m1", "d1"), "overdue"},
		{"borrow within the grace", []act{borrow("m1", "c1"), later(28*day + time.Hour)}, borrow("m1", "d1"), ""},
		{"borrow while suspended", []act{suspend("m1")}, borrow("m1", "c1"), "member-suspended"},
		{"borrow once reinstated", []act{suspend("m1"), later(time.Second), reinstate("m1")}, borrow("m1", "c1"), ""},
		{"borrow what others wait for", []act{borrow("m1", "c1"), reserve("m2", "moby-dick"), giveBack("c1")}, borrow("m3", "c1"), "copy-reserved"},
		{"borrow what one waits for oneself", []act{borrow("m1", "c1"), reserve("m2", "moby-dick"), giveBack("c1")}, borrow("m2", "c1"), ""},
		{"borrow what only a suspended member waits for", []act{borrow("m1", "c1"), reserve("m2", "moby-dick"), suspend("m2"), giveBack("c1")}, borrow("m3", "c1"), ""},
		{"return", []act{borrow("m1", "c1")}, giveBack("c1"), ""},
		{"return what is on the shelf", nil, giveBack("c1"), "not-on-loan"},
		{"return twice", []act{borrow("m1", "c1"), giveBack("c1")}, giveBack("c1"), "not-on-loan"},
		{"return, copy unknown", nil, giveBack("c9"), "unknown-copy"},
		{"renew", []act{borrow("m1", "c1"), later(day)}, renew, ""},
		{"renew over the limit", []act{borrow("m1", "c1"), renew}, renew, "renewal-limit"},
		{"renew what is overdue", []act{borrow("m1", "c1"), later(30 * day)}, renew, "overdue"},
		{"renew what others wait for", []act{borrow("m1", "c1"), reserve("m2", "moby-dick")}, renew, "work-reserved"},
		{"renew while suspended", []act{borrow("m1", "c1"), suspend("m1")}, renew, "member-suspended"},
		{"renew what was returned", []act{borrow("m1", "c1"), giveBack("c1")}, renew, "loan-returned"},
		{"reserve", []act{borrow("m1", "c1")}, reserve("m2", "moby-dick"), ""},
		{"reserve, work unknown", nil, reserve("m1", "ulysses"), "unknown-work"},
		{"reserve, member unknown", []act{borrow("m1", "c1")}, reserve("m9", "moby-dick"), "unknown-member"},
		{"reserve what stands on the shelf", nil, reserve("m1", "moby-dick"), "copy-available"},
		{"reserve twice", []act{borrow("m1", "c1"), reserve("m2", "moby-dick")}, reserve("m2", "moby-dick"), "already-reserved"},
		{"reserve what one has", []act{borrow("m1", "c1")}, reserve("m1", "moby-dick"), "already-borrowed"},
		{"reserve over the limit", []act{borrow("m1", "c1"), borrow("m3", "d1"), borrow("m3", "d2"), reserve("m2", "moby-dick")}, reserve("m2", "dracula"), "reservation-limit"},
		{"reserve while suspended", []act{borrow("m1", "c1"), suspend("m2")}, reserve("m2", "moby-dick"), "member-suspended"},
		{"collect what is not ready", []act{borrow("m1", "c1"), reserve("m2", "moby-dick")}, collect, "not-ready"},
		{"cancel", []act{borrow("m1", "c1"), reserve("m2", "moby-dick")}, cancel, ""},
		{"cancel twice", []act{borrow("m1", "c1"), reserve("m2", "moby-dick"), cancel}, cancel, "reservation-ended"},
		{"register twice", nil, func(t *testing.T, b *bed) error {
			_, err := b.RegisterMember(clerk(t.Context()), lending.RegisterMember{ID: "m1", Name: "Again", Email: "a@example.org"}, nil)
			return err
		}, "member-exists"},
		{"register without an address", nil, func(t *testing.T, b *bed) error {
			_, err := b.RegisterMember(clerk(t.Context()), lending.RegisterMember{ID: "m9", Name: "Nobody", Email: "nobody"}, nil)
			return err
		}, "invalid"},
		{"add twice", nil, func(t *testing.T, b *bed) error {
			_, err := b.AddCopy(clerk(t.Context()), lending.AddCopy{ID: "c1", Work: "moby-dick", Title: "Again"}, nil)
			return err
		}, "copy-exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, limits)
			b.dispatcher(t, false)
			b.members(t, "m1", "m2", "m3")
			b.copies(t, "moby-dick", "c1")
			b.copies(t, "dracula", "d1", "d2")
			for i, act := range c.before {
				if err := act(t, b); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			before := b.rows(t)
			if err := c.last(t, b); code(err) != c.want {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if changed := b.rows(t) != before; changed != (c.want == "") {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// rows is all that a command of the branch could have changed. The shelf follows by itself.
func (b *bed) rows(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	for _, query := range []string{
		`SELECT group_concat(id || name || suspended || standing_at) FROM lending_members`,
		`SELECT group_concat(id || state || coalesce(loan, '') || coalesce(reservation, '')) FROM lending_copies`,
		`SELECT group_concat(id || due_at || version || coalesce(returned_at, '')) FROM lending_loans`,
		`SELECT group_concat(id || state || version) FROM lending_reservations`,
		`SELECT count(*) FROM outbox_messages`,
	} {
		var text *string
		if err := b.store.Read.DB.QueryRow(query).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			out.WriteString(*text)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
