package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

func defaultRetry(t *testing.T) RetryPolicy {
	t.Helper()
	p, err := RetryPolicy{}.filled()
	if err != nil {
		t.Fatal(err)
	}
	p.unreachableCap = 5 * time.Minute
	return p
}

// TestJudge is the table of what each outcome costs a delivery: whether it is charged, whether it is the end, and how long the wait is.
func TestJudge(t *testing.T) {
	t.Parallel()
	p := defaultRetry(t)
	const day = 24 * time.Hour
	for _, c := range []struct {
		name    string
		class   Class
		asked   time.Duration // by the target or the handler
		trial   trial
		charged int
		dead    Class // empty: it is tried again
		wait    time.Duration
	}{
		{"failed", Failed, 0, trial{attempt: 1, charged: 1}, 1, "", 5 * time.Second},
		{"failed again", Failed, 0, trial{attempt: 9, charged: 3}, 3, "", 20 * time.Second},
		{"failed, at the cap", Failed, 0, trial{attempt: 11, charged: 11}, 11, "", time.Hour},
		{"failed, at the bound", Failed, 0, trial{attempt: 12, charged: 12}, 12, Failed, 0},
		{"failed, beyond the horizon", Failed, 0, trial{attempt: 3, charged: 3, waited: 3*day + 1}, 3, Expired, 0},
		{"failed, asked to wait", Failed, time.Minute, trial{attempt: 1, charged: 1}, 1, "", time.Minute},
		{"throttled", Throttled, 0, trial{attempt: 3, charged: 1}, 0, "", 20 * time.Second},
		{"throttled, asked to wait", Throttled, time.Minute, trial{attempt: 3, charged: 1}, 0, "", time.Minute},
		{"throttled, asked too much", Throttled, 30 * day, trial{attempt: 3, charged: 1}, 0, "", day},
		{"throttled, at the bound", Throttled, 0, trial{attempt: 50, charged: 12}, 11, "", time.Hour},
		{"throttled, beyond the horizon", Throttled, 0, trial{attempt: 3, charged: 1, waited: 3*day + 1}, 0, Expired, 0},
		{"unreachable", Unreachable, 0, trial{attempt: 1, charged: 1}, 0, "", 5 * time.Second},
		{"unreachable for long", Unreachable, 0, trial{attempt: 40, charged: 1, unreachable: 80 * day, waited: 80 * day}, 0, "", 5 * time.Minute},
		{"unreachable in an outage", Unreachable, 0, trial{attempt: 40, charged: 1, outage: true}, 0, "", 0},
		{"unreachable, beyond its horizon", Unreachable, 0, trial{attempt: 9, charged: 1, unreachable: 90*day + 1}, 0, Expired, 0},
		{"snoozed", Snoozed, time.Minute, trial{attempt: 20, charged: 12, waited: 9 * day}, 11, "", time.Minute},
		{"snoozed too long", Snoozed, 30 * day, trial{attempt: 1, charged: 1}, 0, "", day},
		{"snoozed into the past", Snoozed, -time.Minute, trial{attempt: 1, charged: 1}, 0, "", 0},
		{"interrupted", Interrupted, 0, trial{attempt: 30, charged: 12, waited: 9 * day}, 11, "", 0},
		{"rejected", Rejected, 0, trial{attempt: 1, charged: 1}, 1, Rejected, 0},
		{"gone", Gone, 0, trial{attempt: 1, charged: 1}, 1, Gone, 0},
		{"corrupt", Corrupt, 0, trial{attempt: 1, charged: 1}, 1, Corrupt, 0},
	} {
		v := p.judge(&Failure{Class: c.class, Err: errors.New("no"), RetryAfter: c.asked}, c.trial)
		if v.charged != c.charged || v.dead != (c.dead != "") || c.dead != "" && v.class != c.dead {
			t.Errorf("%s: %+v; want %d charged, dead %q", c.name, v, c.charged, c.dead)
		}
		least, most := c.wait*8/10, c.wait*12/10
		if c.asked != 0 {
			least, most = c.wait, c.wait // who asks is not second-guessed
		}
		if v.wait < least || v.wait > most {
			t.Errorf("%s: waits %s, want %s to %s", c.name, v.wait, least, most)
		}
		if backoff := c.class == Failed || c.class == Throttled; !v.dead && v.waited-c.trial.waited != map[bool]time.Duration{true: v.wait}[backoff] {
			t.Errorf("%s: the horizon was moved by %s for a wait of %s", c.name, v.waited-c.trial.waited, v.wait)
		}
	}
}

// Whatever number is stored, the wait is within its bounds.
func TestBackoffOfAnyAttempt(t *testing.T) {
	t.Parallel()
	p := defaultRetry(t)
	for _, n := range []int{math.MinInt, -1, 0, 1, 2, 10, 62, 63, 64, 65, 1000, math.MaxInt32, math.MaxInt} {
		if d := p.delay(n); d < 4*time.Second || d > 72*time.Minute {
			t.Errorf("delay %d is %s", n, d)
		}
		for _, class := range []Class{Failed, Throttled, Unreachable} {
			p := p
			p.MaxAttempts = math.MaxInt
			v := p.judge(&Failure{Class: class, Err: errors.New("no")}, trial{attempt: n, charged: max(n, 1) - 1, waited: p.Horizon})
			if v.dead || v.wait <= 0 || v.wait > 72*time.Minute || v.waited < p.Horizon {
				t.Errorf("%s after attempt %d: %+v", class, n, v)
			}
		}
	}
	if sum := addWait(math.MaxInt64-1, time.Hour); sum != math.MaxInt64 {
		t.Errorf("the sum of waits went over its end: %d", sum)
	}
}

// A thousand that failed together do not come back together: no second of the jitter's span has more than three times its share.
func TestThousandAreSpreadOut(t *testing.T) {
	t.Parallel()
	p := defaultRetry(t)
	for _, n := range []int{1, 6, 30} {
		const slots = 20
		nominal := min(p.First<<min(n-1, 20), p.Cap)
		begin, span := nominal*8/10, nominal*4/10
		counts := make([]int, slots+1)
		different := map[time.Duration]bool{}
		for range 1000 {
			d := p.delay(n)
			different[d] = true
			counts[(d-begin)*slots/span]++
		}
		for i, got := range counts {
			if got > 3*1000/slots || i < slots && got == 0 {
				t.Errorf("delay %d: %d of a thousand in slot %d of %d", n, got, i, slots)
			}
		}
		if len(different) < 950 {
			t.Errorf("delay %d: %d instants for a thousand", n, len(different))
		}
	}
}

// TestCorruptPayloadIsNeverSent changes the stored bytes behind the outbox's back, after their hash was taken.
func TestCorruptPayloadIsNeverSent(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	if err := d.Hold(t.Context(), "h", "until it is tampered with"); err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"k", "k", ""} {
		m := event(i)
		m.OrderingKey = key
		b.stage(t, m)
	}
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for _, statement := range []string{`DROP TRIGGER outbox_messages_immutable`, `UPDATE outbox_messages SET payload = '{"n":9}' WHERE seq = 1`} {
			if _, err := tx.Tx.Tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err := d.Resume(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		eventually(t, "reported", func() bool {
			row := b.rows(t)[0]
			return row.State == "dead-letter" && row.Attempt == int64(n) && b.state(t, 2) == "dispatched"
		})
		if row := b.rows(t)[0]; row.Class.String != string(Corrupt) || row.LastError.String != errHashMismatch.Error() {
			t.Errorf("reported as %+v", row)
		}
		if b.state(t, 1) != "pending" || r.count() != 1 {
			t.Errorf("%d were sent, want the one of no key: it holds back the next of its key, as every dead letter does", r.count())
		}
		b.tallied(t, d)
		if n == 1 { // replayed, it is found out again
			if err := b.replay(t, d, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, err := d.Backlog(t.Context())
	if err != nil || l.Total.Failed != 1 {
		t.Errorf("backlog %+v, %v; want it among the failed, which an alert watches", l.Total, err)
	}
	var evidence string
	if err := b.read.DB.QueryRow(`SELECT group_concat(class || fence) FROM outbox_attempts`).Scan(&evidence); err != nil || evidence == "" {
		t.Errorf("evidence %q, %v", evidence, err)
	}
}

// A handler's error gets its class, and none that is not a handler's to give.
func TestFailureOf(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errStopping)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want Class
	}{
		{t.Context(), errors.New("no"), Failed},
		{t.Context(), Permanent(errors.New("no")), Rejected},
		{t.Context(), fmt.Errorf("wrapped: %w", Permanent(errors.New("no"))), Rejected},
		{t.Context(), RetryAfter(time.Second, errors.New("slow")), Throttled},
		{t.Context(), Snooze(time.Second), Snoozed},
		{t.Context(), &Failure{Class: Unreachable}, Unreachable},
		{t.Context(), &Failure{Class: Gone}, Gone},
		{t.Context(), &Failure{Class: Interrupted}, Failed},
		{t.Context(), &Failure{Class: Cancelled}, Failed},
		{t.Context(), &Failure{Class: Expired}, Failed},
		{t.Context(), &Failure{Class: "made up"}, Failed},
		{t.Context(), context.DeadlineExceeded, Failed},
		{t.Context(), fmt.Errorf("commit: %w", ErrStoreFull), Interrupted},
		{t.Context(), ErrQueueFull, Interrupted},
		{stopped, Permanent(errors.New("no")), Interrupted},
	} {
		if got := failureOf(c.ctx, c.err); got.Class != c.want {
			t.Errorf("%v is %s, want %s", c.err, got.Class, c.want)
		}
	}
}
