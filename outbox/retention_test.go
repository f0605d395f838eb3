package outbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func (b *bed) retention(t testing.TB, c RetentionConfig) *Retention {
	t.Helper()
	c.Writer, c.Read = b.writer, b.read
	r, err := NewRetention(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bed) count(t testing.TB, table string) (n int) {
	t.Helper()
	if err := b.read.DB.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func rules(r RetentionRules) func() RetentionRules { return func() RetentionRules { return r } }

func TestRetentionByAgeAndCount(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var down atomic.Bool
		r := recorder{answer: func(d Delivery) error {
			switch {
			case d.Message.ID == "dead":
				return Permanent(errors.New("no"))
			case d.Message.ID == "waiting":
				return Snooze(200 * day)
			case down.Load():
				return errors.New("later")
			}
			return nil
		}}
		d := b.dispatcher(t, Config{Poll: 100 * day, Retry: RetryPolicy{RetryAfterCap: 400 * day}}, handler("h", "*", &r))
		stage := func(id MessageID) {
			m := event(1)
			m.ID = id
			b.stage(t, m)
			synctest.Wait()
		}
		keep := b.retention(t, RetentionConfig{Dispatcher: d, Rules: rules(RetentionRules{Dispatched: 7 * day, DispatchedCount: 1000, DeadLetters: 90 * day, Inbox: 90 * day})})
		round := func() int64 {
			t.Helper()
			purged, err := keep.Round(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if purged.Paused != 0 {
				t.Fatalf("paused for %s", purged.Paused)
			}
			return purged.Messages
		}
		stage("dead")
		stage("waiting")
		b.stage(t, events(0, 1200)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := round(); n != 200 {
			t.Errorf("%d messages removed beyond the count, want 200", n)
		}
		time.Sleep(6 * day)
		stage("young")
		if n := round(); n != 1 {
			t.Errorf("%d messages removed before their age, want the one that the new one pushed out", n)
		}
		time.Sleep(2 * day)
		if n := round(); n != 999 {
			t.Errorf("%d messages removed by age, want 999", n)
		}
		time.Sleep(80 * day)
		if n := round(); n != 1 || b.count(t, "outbox_messages") != 2 || b.count(t, "outbox_attempts") != 2 {
			t.Errorf("%d removed, %d left; the dead letter and what waits are kept", n, b.count(t, "outbox_messages"))
		}
		m, err := FindMessage(context.Background(), b.read.DB, MainTenant, "dead")
		if err != nil || sha256.Sum256(m.Payload) != sha256.Sum256(event(1).Payload) || m.State() != StateDeadLetter {
			t.Errorf("dead letter after months: %+v, %v", m, err)
		}
		time.Sleep(3 * day)
		if n := round(); n != 1 {
			t.Errorf("%d dead letters removed after 90 days, want 1", n)
		}
		b.tallied(t, d)
		if _, err := FindMessage(context.Background(), b.read.DB, MainTenant, "waiting"); err != nil {
			t.Errorf("a message that waits was removed: %v", err)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestInboxOutlivesTheMessage(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		d := b.dispatcher(t, Config{Poll: 100 * day}, Handler{Name: "in", Routes: []Route{{Pattern: "*"}},
			InTx: func(context.Context, *Tx, Delivery) error { return nil }})
		b.stage(t, event(1))
		synctest.Wait()
		keep := b.retention(t, RetentionConfig{Rules: rules(RetentionRules{Dispatched: day, DispatchedCount: 1000, DeadLetters: day, Inbox: 30 * day})})
		for _, step := range []struct {
			wait            time.Duration
			messages, inbox int
		}{{time.Hour, 1, 1}, {day, 0, 1}, {29 * day, 0, 1}, {2 * day, 0, 0}} {
			time.Sleep(step.wait)
			if _, err := keep.Round(context.Background()); err != nil {
				t.Fatal(err)
			}
			if m, in := b.count(t, "outbox_messages"), b.count(t, "outbox_inbox"); m != step.messages || in != step.inbox {
				t.Errorf("after another %s: %d messages, %d remembered; want %d and %d", step.wait, m, in, step.messages, step.inbox)
			}
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}

func TestRetentionPausesAfterAJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "thing-done")
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		var r recorder
		d := b.dispatcher(t, Config{Poll: 1000 * time.Hour}, handler("h", "*", &r))
		b.stage(t, event(1))
		synctest.Wait()
		config := RetentionConfig{Now: now, Rules: rules(RetentionRules{Dispatched: time.Hour, DispatchedCount: 1000, DeadLetters: time.Hour})}
		keep := b.retention(t, config)
		round := func(what string, paused time.Duration, left int) {
			t.Helper()
			purged, err := keep.Round(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if purged.Paused != paused || b.count(t, "outbox_messages") != left {
				t.Errorf("%s: paused for %s with %d messages left, want %s and %d", what, purged.Paused, b.count(t, "outbox_messages"), paused, left)
			}
		}
		round("at first", 0, 1)
		ahead.Store(int64(5 * 365 * 24 * time.Hour))
		round("five years ahead", 24*time.Hour, 1)
		time.Sleep(10 * time.Hour)
		round("ten hours later", 14*time.Hour, 1)
		// A restart goes on with what is left, in uptime.
		keep = b.retention(t, config)
		time.Sleep(5 * time.Hour)
		round("restarted", 14*time.Hour, 1)
		ahead.Store(0)
		time.Sleep(time.Minute)
		round("set right", 14*time.Hour-time.Minute, 1)
		time.Sleep(14 * time.Hour)
		round("after the pause", 0, 0)
		keep = b.retention(t, config)
		ahead.Store(int64(2 * time.Hour))
		round("restarted with a clock ahead", 24*time.Hour, 0)
		_ = d.Stop(context.Background())
		b.close()
	})
}

// TestRetentionBelievesNoJumpDuringARound: the clock was behind when a round began, and is set right in the middle of it.
func TestRetentionBelievesNoJumpDuringARound(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	d := b.dispatcher(t, Config{}, handler("h", "*", &recorder{}))
	b.stage(t, events(0, 20)...)
	eventually(t, "dispatched", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == 20
	})
	looks := 0
	keep := b.retention(t, RetentionConfig{Now: func() time.Time {
		if looks++; looks > 1 {
			return time.Now().AddDate(50, 0, 0)
		}
		return time.Now()
	}})
	for range 2 {
		if purged, err := keep.Round(t.Context()); err != nil || purged.Messages > 0 {
			t.Errorf("purged %+v, %v", purged, err)
		}
	}
}

// What was delivered while the clock was decades behind is old as soon as the clock is right again, which retention itself may never have
// seen: it looks once an hour, and the process may be killed in between.
func TestRetentionPausesAfterAClockThatWasBehind(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"in one process": false, "across a kill": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s seam
				b := clockBed(t, &s, filepath.Join(t.TempDir(), "outbox.db"))
				var r recorder
				d := b.dispatcher(t, Config{Now: s.now, Poll: time.Minute}, handler("h", "*", &r))
				config := RetentionConfig{Now: s.now, Dispatcher: d, Rules: rules(RetentionRules{Dispatched: 7 * day, DeadLetters: 7 * day})}
				keep := b.retention(t, config)
				if purged, err := keep.Round(t.Context()); err != nil || purged.Paused != 0 {
					t.Fatalf("at first: %+v, %v", purged, err)
				}
				s.set(-29 * year)
				time.Sleep(2 * time.Minute)
				b.stage(t, event(1))
				time.Sleep(2 * time.Minute)
				s.set(0)
				time.Sleep(2 * time.Minute)
				var delivered int
				if err := b.read.DB.QueryRow(`SELECT count(*) FROM outbox_deliveries WHERE state = 'dispatched'`).Scan(&delivered); err != nil || delivered != 1 {
					t.Fatalf("%d delivered, %v", delivered, err)
				}
				if killed {
					config.Dispatcher = nil
					keep = b.retention(t, config)
				}
				purged, err := keep.Round(t.Context())
				if left := b.count(t, "outbox_messages"); err != nil || purged.Paused != 24*time.Hour || left != 1 {
					t.Errorf("paused for %s with %d messages left, %v", purged.Paused, left, err)
				}
				_ = d.Stop(context.Background())
				b.close()
			})
		})
	}
}

func TestRetentionMakesRoomWhenFull(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(d Delivery) error {
		if d.Message.Seq == 1 {
			return Permanent(errors.New("no"))
		}
		return nil
	}}
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	const messages = 2*purgeWindow + 1
	b.do(t, func(ctx context.Context, tx *Tx) error {
		for i := range messages {
			if _, err := Stage(ctx, tx, event(i)); err != nil {
				return err
			}
		}
		return nil
	})
	eventually(t, "settled", func() bool {
		l, err := d.Backlog(t.Context())
		return err == nil && l.Total.Dispatched == messages-1 && l.Total.Failed == 1
	})
	// Full until the first window is gone: the oldest go, no more than needed, and no dead letter.
	purged, err := b.retention(t, RetentionConfig{Full: func() bool { return b.count(t, "outbox_messages") > messages-purgeWindow+1 }}).Round(t.Context())
	if err != nil || purged.Messages != purgeWindow-1 || b.state(t, 0) != "dead-letter" {
		t.Errorf("removed %+v, %v; want %d that are dispatched", purged, err, purgeWindow-1)
	}
	b.tallied(t, d)
}

// A batch is bounded by what its payloads take too: each of their pages is touched.
func TestPurgeIsBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var r recorder
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	for i := range 9 {
		m := event(i)
		m.Payload = fmt.Appendf(nil, `"%01500000d"`, i)
		b.stage(t, m)
	}
	eventually(t, "settled", func() bool { l, err := d.Backlog(t.Context()); return err == nil && l.Total.Dispatched == 9 })
	keep := b.retention(t, RetentionConfig{})
	_, batches, err := keep.look(t.Context(), bounds{dispatched: micros(time.Now().Add(time.Hour)), dead: 0, beyond: 0}, 0)
	if err != nil || len(batches) != 5 {
		t.Errorf("%d batches, %v; want 2 messages of 1.5 MB in each", len(batches), err)
	}
}

// The record of a replay goes when it is old and its delivery is gone, whatever its own age; in windows, of which those that are kept do not
// hide the rest.
func TestRetentionOfReplays(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	r := recorder{answer: func(Delivery) error { return Permanent(errors.New("no")) }}
	d := b.dispatcher(t, Config{Poll: time.Hour}, handler("h", "*", &r))
	b.stage(t, event(1))
	eventually(t, "dead letter", func() bool { return b.state(t, 0) == "dead-letter" })
	if err := b.replay(t, d, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dead again", func() bool { return b.state(t, 0) == "dead-letter" && r.count() == 2 })
	const gone = 2*purgeWindow + 1
	b.do(t, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
			INSERT INTO outbox_replays(delivery, message, tenant, handler, actor, reason, replayed_at, failure)
			SELECT 1000 + i, 'm', 'main', 'h', 'os:mary', 'simulated', ?1, 'rejected' FROM n`, micros(tx.Now), gone)
		return err
	})
	const day = 24 * time.Hour
	now := time.Now()
	keep := b.retention(t, RetentionConfig{Dispatcher: d, Rules: rules(RetentionRules{DeadLetters: 500 * day, Replays: 365 * day}), Now: func() time.Time { return now }})
	round := func(want int64, why string) {
		t.Helper()
		keep.clock = clockWatch{wall: now.UTC(), at: time.Now(), saved: time.Now()} // this clock has not jumped: it was looked at all the time
		purged, err := keep.Round(t.Context())
		if err != nil || purged.Replays != want {
			t.Errorf("%s: %+v, %v; want %d records of replays removed", why, purged, err, want)
		}
	}
	now = now.Add(364 * day)
	round(0, "none is old")
	now = now.Add(2 * day)
	round(gone, "old, but for the one whose dead letter is kept")
	round(0, "again")
	now = now.Add(200 * day)
	round(1, "its dead letter is gone")
	if n := b.count(t, "outbox_replays"); n != 0 {
		t.Errorf("%d records of replays are left", n)
	}
}
