package outbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var operator = Operator{Tenant: MainTenant, Actor: "os:mary", Reason: "the receiver was mended"}

// change runs an operator's change in a command of its own.
func change[T any](t testing.TB, b *bed, fn func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	t.Helper()
	var got T
	err := b.writer.Do(context.Background(), func(ctx context.Context, tx *Tx) (err error) {
		got, err = fn(ctx, tx)
		return err
	})
	return got, err
}

func (b *bed) replay(t testing.TB, d *Dispatcher, id int64) error {
	t.Helper()
	_, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Replay(ctx, tx, operator, DeliveryID(id)) })
	return err
}

// tallied holds the counts in memory against the rows, which they follow.
func (b *bed) tallied(t testing.TB, d *Dispatcher) {
	t.Helper()
	differs := "nothing was counted"
	for range 2000 {
		if differs = b.miscounted(t, d); differs == "" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error(differs)
}

// miscounted says by how much the counts in memory and the rows differ, if they do.
func (b *bed) miscounted(t testing.TB, d *Dispatcher) string {
	t.Helper()
	var pending, processing, dead int64
	err := b.read.DB.QueryRow(`SELECT coalesce(sum(state = 'pending'), 0), coalesce(sum(state = 'processing'), 0), coalesce(sum(state = 'dead-letter'), 0) FROM outbox_deliveries`).
		Scan(&pending, &processing, &dead)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Backlog(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if l.Total.Pending == pending && l.Total.Processing == processing && l.Total.Failed == dead {
		return ""
	}
	return fmt.Sprintf("counted %d pending, %d processing, %d dead; stored are %d, %d, %d", l.Total.Pending, l.Total.Processing, l.Total.Failed, pending, processing, dead)
}

func (b *bed) state(t testing.TB, i int) string { t.Helper(); return b.rows(t)[i].State }

func TestReplayTwiceWorksTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var mended atomic.Bool
	r := recorder{answer: func(d Delivery) error {
		if mended.Load() {
			return nil
		}
		return Permanent(fmt.Errorf("no, for the %d. time", d.Attempt))
	}}
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	staged := b.stage(t, event(1))
	for n := 1; n <= 3; n++ {
		eventually(t, "dead letter", func() bool { return b.state(t, 0) == "dead-letter" && r.count() == n })
		if n == 3 {
			mended.Store(true)
		}
		if err := b.replay(t, d, 1); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "dispatched", func() bool { return b.state(t, 0) == "dispatched" })
	row := b.rows(t)[0]
	if row.Attempt != 4 || row.Charged != 1 {
		t.Errorf("attempts go on counting and charges begin anew: %+v", row)
	}
	m, err := FindMessage(t.Context(), b.read.DB, MainTenant, staged[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if m.PayloadSHA256 != sha256.Sum256(event(1).Payload) || m.ID != staged[0].ID {
		t.Error("the message is not what was staged")
	}
	replays := m.Deliveries[0].Replays
	if len(replays) != 3 {
		t.Fatalf("%d audit rows, want 3", len(replays))
	}
	for i, audit := range replays {
		want := fmt.Sprintf("rejected: no, for the %d. time", i+1)
		if audit.Actor != operator.Actor || audit.Reason != operator.Reason || audit.Failure != want || audit.ReplayedAt.IsZero() {
			t.Errorf("audit row %d: %+v, want it to answer %q", i, audit, want)
		}
	}
	b.tallied(t, d)
	var conflict *StateConflict
	if err := b.replay(t, d, 1); !errors.As(err, &conflict) || conflict.State != StateDispatched {
		t.Errorf("replay of a dispatched delivery: %v", err)
	}
}

func TestOperatorIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(Delivery) error { return Permanent(errors.New("no")) }}
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	b.stage(t, event(1))
	eventually(t, "dead letter", func() bool { return b.state(t, 0) == "dead-letter" })
	if _, err := d.Remove(t.Context(), "h", "gone"); err != nil {
		t.Fatal(err)
	}
	far := operator
	far.Tenant = "far"
	for _, c := range []struct {
		name string
		by   Operator
		id   DeliveryID
		want error
	}{
		{"no reason", Operator{MainTenant, "os:mary", ""}, 1, ErrNoReason},
		{"blank reason", Operator{MainTenant, "os:mary", " "}, 1, ErrNoReason},
		{"long reason", Operator{MainTenant, "os:mary", strings.Repeat("ä", MaxReason+1)}, 1, ErrNoReason},
		{"two lines", Operator{MainTenant, "os:mary", "a\nb"}, 1, ErrNoReason},
		{"another tenant's", far, 1, ErrNoDelivery},
		{"none", operator, 9, ErrNoDelivery},
		{"handler gone", operator, 1, ErrUnknownHandler},
	} {
		_, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Replay(ctx, tx, c.by, c.id) })
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	_, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Skip(ctx, tx, operator, 1) })
	if !errors.Is(err, ErrBlocksNothing) {
		t.Errorf("skip of what blocks nothing: %v", err)
	}
	var conflict *StateConflict
	_, err = change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Cancel(ctx, tx, operator, 1) })
	if !errors.As(err, &conflict) || conflict.Want != StatePending {
		t.Errorf("cancel of a dead letter: %v", err)
	}
	_, err = change(t, b, func(ctx context.Context, tx *Tx) ([]DeliveryID, error) {
		return d.Resend(ctx, tx, operator, "none", "")
	})
	if !errors.Is(err, ErrNoMessage) {
		t.Errorf("resend of no message: %v", err)
	}
	if b.state(t, 0) != "dead-letter" {
		t.Error("a refused operator changed the delivery")
	}
	var audits int
	if err := b.read.DB.QueryRow(`SELECT count(*) FROM outbox_replays`).Scan(&audits); err != nil || audits != 0 {
		t.Errorf("%d audit rows of refused replays, %v", audits, err)
	}
}

// A horizon that has passed must not end a replayed delivery at its first failure.
func TestReplayBeginsTheHorizonAnew(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(d Delivery) error {
		if d.Attempt < 4 {
			return errors.New("no")
		}
		return nil
	}}
	d := b.dispatcher(t, Config{Poll: time.Hour, Retry: RetryPolicy{First: 4 * time.Millisecond, Horizon: 2 * time.Millisecond}}, handler("h", "*", &r))
	b.stage(t, event(1))
	eventually(t, "expired", func() bool { row := b.rows(t)[0]; return row.State == "dead-letter" && row.Class.String == "expired" })
	if err := b.replay(t, d, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dispatched", func() bool { return b.state(t, 0) == "dispatched" })
}

func TestReplayKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		free func(ctx context.Context, d *Dispatcher, tx *Tx) (Change, error)
		want string // the order in which the messages arrive
	}{
		{"replayed", func(ctx context.Context, d *Dispatcher, tx *Tx) (Change, error) {
			return d.Replay(ctx, tx, operator, 1)
		}, "1 1 2 3"},
		{"skipped", func(ctx context.Context, d *Dispatcher, tx *Tx) (Change, error) { return d.Skip(ctx, tx, operator, 1) }, "1 2 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "thing-done")
			r := recorder{answer: func(d Delivery) error {
				if d.Message.Seq == 1 && d.Attempt == 1 {
					return Permanent(errors.New("no"))
				}
				return nil
			}}
			d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
			for i := range 3 {
				m := event(i)
				m.OrderingKey = "k"
				b.stage(t, m)
			}
			eventually(t, "dead letter", func() bool { return b.state(t, 0) == "dead-letter" })
			if got := b.rows(t); got[1].State != "pending" || r.count() != 1 {
				t.Fatalf("the dead letter does not hold back its key: %+v", got)
			}
			if _, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return c.free(ctx, d, tx) }); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the rest dispatched", func() bool { return b.state(t, 2) == "dispatched" })
			var order []string
			r.mu.Lock()
			for _, got := range r.received {
				order = append(order, fmt.Sprint(got.Message.Seq))
			}
			r.mu.Unlock()
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("arrived %s, want %s", got, c.want)
			}
			if c.name == "skipped" {
				// Outside the order now: it is replayed behind the others.
				if err := b.replay(t, d, 1); err != nil {
					t.Fatal(err)
				}
				eventually(t, "replayed behind", func() bool { return b.state(t, 0) == "dispatched" })
			}
			b.tallied(t, d)
		})
	}
}

func TestCancelFreesTheKey(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	if err := d.Hold(t.Context(), "h", "paused"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		m := event(i)
		m.OrderingKey = "k"
		b.stage(t, m)
	}
	if _, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Cancel(ctx, tx, operator, 1) }); err != nil {
		t.Fatal(err)
	}
	if row := b.rows(t)[0]; row.State != "dead-letter" || row.Class.String != "cancelled" || row.Fence == 0 || row.Attempt != 0 ||
		row.LastError.String != "cancelled by os:mary: the receiver was mended" {
		t.Errorf("cancelled delivery: %+v", row)
	}
	if err := d.Resume(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second dispatched", func() bool { return b.state(t, 1) == "dispatched" })
	b.tallied(t, d)
}

func TestResend(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	b.do(t, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE effects (message TEXT)`)
		return err
	})
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("out", "*", &r), Handler{Name: "in", Routes: []Route{{Pattern: "*"}},
		InTx: func(ctx context.Context, tx *Tx, d Delivery) error {
			_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, string(d.Message.ID))
			return err
		}})
	staged := b.stage(t, event(1))
	eventually(t, "dispatched", func() bool { rows := b.rows(t); return rows[0].State == "dispatched" && rows[1].State == "dispatched" })
	made, err := change(t, b, func(ctx context.Context, tx *Tx) ([]DeliveryID, error) {
		return d.Resend(ctx, tx, operator, staged[0].ID, "")
	})
	if err != nil || len(made) != 2 {
		t.Fatalf("resend: %v, %v", made, err)
	}
	eventually(t, "sent again", func() bool { rows := b.rows(t); return rows[2].State == "dispatched" && rows[3].State == "dispatched" })
	m, err := FindMessage(t.Context(), b.read.DB, MainTenant, staged[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range m.Deliveries[2:] {
		state := again.State.(Dispatched)
		if again.ResendOf == 0 || state.Suppressed != (again.Handler == "in") {
			t.Errorf("sent again: %+v", again)
		}
	}
	var effects int
	if err := b.read.DB.QueryRow(`SELECT count(*) FROM effects`).Scan(&effects); err != nil || effects != 1 || r.count() != 2 {
		t.Errorf("%d effects, received %d times; want 1 and 2: %v", effects, r.count(), err)
	}
	b.tallied(t, d)
}

func TestBulkReplayGoesOnWhereItStood(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var mended atomic.Bool
	answer := func(Delivery) error {
		if mended.Load() {
			return nil
		}
		return &Failure{Class: Rejected, Err: errors.New("Bad Request"), Status: 400}
	}
	one, two := recorder{answer: answer}, recorder{answer: answer}
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("one", "*", &one), handler("two", "*", &two))
	for i := range 30 {
		b.stage(t, event(i))
	}
	eventually(t, "all dead", func() bool { l, err := d.Backlog(t.Context()); return err == nil && l.Total.Failed == 60 })
	find := func(f DeadLetters, after DeadLetterPlace, limit int) ([]DeadLetterRef, DeadLetterPlace, bool) {
		f.Tenant = MainTenant
		found, next, done, err := d.FindDeadLetters(t.Context(), f, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		return found, next, done
	}
	count := func(f DeadLetters) (n int) {
		var after DeadLetterPlace
		for done := false; !done; {
			var found []DeadLetterRef
			found, after, done = find(f, after, 7)
			n += len(found)
		}
		return n
	}
	hour := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name string
		f    DeadLetters
		want int
	}{
		{"all", DeadLetters{}, 60}, {"handler", DeadLetters{Handler: "two"}, 30}, {"class", DeadLetters{Class: Rejected}, 60},
		{"other class", DeadLetters{Class: Failed}, 0}, {"type", DeadLetters{Type: "thing-*"}, 60}, {"other type", DeadLetters{Type: "x*"}, 0},
		{"text", DeadLetters{Text: "bad req"}, 60}, {"other text", DeadLetters{Text: "zz"}, 0}, {"later", DeadLetters{From: hour}, 0},
		{"earlier", DeadLetters{To: hour, FailedTo: hour}, 60}, {"failed later", DeadLetters{FailedFrom: hour}, 0},
	} {
		if got := count(c.f); got != c.want {
			t.Errorf("%s: %d dead letters, want %d", c.name, got, c.want)
		}
	}
	mended.Store(true)
	replay := func(found []DeadLetterRef) int {
		changes, err := change(t, b, func(ctx context.Context, tx *Tx) ([]Change, error) { return d.ReplayFound(ctx, tx, operator, found) })
		if err != nil {
			t.Fatal(err)
		}
		return len(changes)
	}
	// Half of it, and then it is killed; the same filter does the rest.
	found, _, _ := find(DeadLetters{}, DeadLetterPlace{}, 25)
	if n := replay(found); n != 25 {
		t.Errorf("replayed %d, want 25", n)
	}
	if n := replay(found); n != 0 {
		t.Errorf("%d that are no dead letters any more were replayed again", n)
	}
	if got := count(DeadLetters{}); got != 35 {
		t.Errorf("%d are left, want 35", got)
	}
	var after DeadLetterPlace
	for done := false; !done; {
		found, after, done = find(DeadLetters{}, after, 25)
		replay(found)
	}
	eventually(t, "all dispatched", func() bool { l, err := d.Backlog(t.Context()); return err == nil && l.Total.Dispatched == 60 })
	var audits int
	if err := b.read.DB.QueryRow(`SELECT count(DISTINCT delivery) FROM outbox_replays`).Scan(&audits); err != nil || audits != 60 {
		t.Errorf("%d deliveries with an audit row, want 60: %v", audits, err)
	}
	b.tallied(t, d)
}
