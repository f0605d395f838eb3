package outbox

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// seam is a wall clock that can be set.
type seam struct{ offset atomic.Int64 }

func (s *seam) now() time.Time           { return time.Now().Add(time.Duration(s.offset.Load())) }
func (s *seam) set(by time.Duration)     { s.offset.Store(int64(by)) }
func (s *seam) config() (c WriterConfig) { c.Now = s.now; return c }

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func clockBed(t *testing.T, s *seam, path string) *bed {
	t.Helper()
	b := openBedWith(t, path, s.config())
	b.do(t, func(ctx context.Context, tx *Tx) error {
		return DeclareTypes(ctx, tx, []TypeVersion{{Type: "thing-done", SchemaVersion: 1}})
	})
	return b
}

// Whatever the wall clock does, a retry comes when its backoff has passed, what is due is delivered, what is scheduled comes at its time by the
// wall, and nothing is given up.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{
		"an hour ahead": time.Hour, "a day ahead": day, "five years ahead": 5 * year,
		"a minute back": -time.Minute, "a day back": -day, "to 1970": -29 * year,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s seam
				b := clockBed(t, &s, filepath.Join(t.TempDir(), "outbox.db"))
				cut := atomic.Bool{}
				cut.Store(true)
				var failing, unreachable, held, scheduled []time.Time
				d := b.dispatcher(t, Config{Now: s.now, Poll: 5 * time.Minute, Retry: RetryPolicy{First: 30 * time.Minute, Cap: 4 * time.Hour},
					Breaker: BreakerPolicy{ProbeCap: time.Hour}},
					outside("failing", 1, func(context.Context, Delivery) error {
						failing = append(failing, time.Now())
						if len(failing) < 4 {
							return errors.New("no")
						}
						return nil
					}),
					outside("unreachable", 1, func(context.Context, Delivery) error {
						unreachable = append(unreachable, time.Now())
						if cut.Load() {
							return errRefused
						}
						return nil
					}),
					outside("held", 4, func(context.Context, Delivery) error { held = append(held, time.Now()); return nil }),
					Handler{Name: "scheduled", Routes: []Route{{Kind: ProviderEffect, Pattern: "later"}}, RepeatKey: "id", Concurrency: 1,
						Outside: func(context.Context, Delivery) error { scheduled = append(scheduled, time.Now()); return nil }},
				)
				if err := d.Hold(t.Context(), "held", "paused by a test"); err != nil {
					t.Fatal(err)
				}
				b.stage(t, event(0), Message{Kind: ProviderEffect, Type: "later", Payload: []byte("{}"), DeliverAt: s.now().Add(12 * time.Hour)})
				staged := time.Now()
				time.Sleep(10 * time.Minute)
				s.set(jump)
				time.Sleep(10 * time.Minute) // noticed by now
				if err := d.Resume(t.Context(), "held"); err != nil {
					t.Fatal(err)
				}
				resumed := time.Now()
				synctest.Wait()
				if len(held) != 1 || !held[0].Equal(resumed) {
					t.Errorf("what was due came at %v, not at %v", held, resumed)
				}
				time.Sleep(30 * time.Hour)
				cut.Store(false)
				time.Sleep(8 * time.Hour)
				synctest.Wait()
				want := 30 * time.Minute
				for i := range failing[1:] {
					if gap := failing[i+1].Sub(failing[i]); gap < want*8/10 || gap > want*12/10+time.Second {
						t.Errorf("retry %d came after %s, want %s within 20 %%", i+1, gap, want)
					}
					want *= 2
				}
				if len(failing) != 4 || len(unreachable) < 20 {
					t.Errorf("%d attempts of the failing one, %d of the unreachable one", len(failing), len(unreachable))
				}
				for _, r := range b.rows(t)[:3] {
					if r.State != "dispatched" {
						t.Errorf("not delivered: %+v", r)
					}
				}
				// By the wall it is due twelve hours after it was staged.
				switch due := staged.Add(12*time.Hour - jump); {
				case due.After(time.Now()):
					if len(scheduled) != 0 {
						t.Errorf("the scheduled one came at %v, before its time", scheduled)
					}
				case len(scheduled) != 1 || scheduled[0].Before(due) || jump < 10*time.Hour && scheduled[0].After(due.Add(time.Second)):
					t.Errorf("the scheduled one came at %v, want %v", scheduled, due)
				}
				_ = d.Stop(context.Background())
				b.close()
			})
		})
	}
}

// A device without a clock of its own starts in 1970, or in another year, and later learns the time.
func TestBootWithAWrongClock(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"1970": -30 * year, "a day back": -day, "five years ahead": 5 * year} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s seam
				path := filepath.Join(t.TempDir(), "outbox.db")
				built := time.Now().Add(-time.Hour)
				config := Config{Now: s.now, Poll: 5 * time.Minute, Retry: RetryPolicy{First: time.Hour}, BuildDate: built, Breaker: BreakerPolicy{ProbeCap: time.Hour}}
				up := atomic.Bool{}
				counts := [4]atomic.Int32{}
				handle := func(i int, err error) Outside {
					return func(context.Context, Delivery) error {
						counts[i].Add(1)
						if !up.Load() {
							return err
						}
						return nil
					}
				}
				signed := outside("signed", 2, handle(3, nil))
				signed.NeedsClock = true
				handlers := []Handler{outside("fresh", 2, handle(0, nil)), outside("failing", 2, handle(1, errors.New("no"))),
					outside("unreachable", 2, handle(2, errRefused)), signed}
				b := clockBed(t, &s, path)
				d := b.dispatcher(t, config, handlers...)
				for _, name := range []HandlerName{"fresh", "signed"} {
					if err := d.Hold(t.Context(), name, "paused by a test"); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 3 {
					m := event(i)
					m.OrderingKey = "k"
					b.stage(t, m, event(10+i))
				}
				time.Sleep(10 * time.Minute)
				_ = d.Stop(t.Context())
				b.close()

				s.set(wrong)
				b = clockBed(t, &s, path)
				d = b.dispatcher(t, config, handlers...)
				for _, name := range []HandlerName{"fresh", "signed"} {
					if err := d.Resume(t.Context(), name); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := counts[0].Load(); n != 6 {
					t.Errorf("%d of 6 delivered that were due", n)
				}
				lane, early := laneOf(t, d, "signed"), counts[3].Load()
				if wrong < -time.Hour {
					if early != 0 || lane.Hold != ClockUntrusted || lane.Held != 6 || d.ClockTrusted() {
						t.Errorf("with a clock before the build date: %d attempts, %+v", early, lane)
					}
				} else if early != 6 || lane.Hold != "" {
					t.Errorf("with a clock that can be right: %d attempts, %+v", early, lane)
				}
				time.Sleep(5 * time.Hour)
				s.set(0) // the time is learned
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := counts[3].Load(); n != 6 {
					t.Errorf("%d of 6 delivered once the clock is right", n)
				}
				up.Store(true)
				time.Sleep(2 * day)
				synctest.Wait()
				for _, r := range b.rows(t) {
					if r.State != "dispatched" {
						t.Errorf("in the end: %+v", r)
					}
				}
				_ = d.Stop(context.Background())
				b.close()
			})
		})
	}
}

// An attempt that runs while the clock jumps is judged by the time that it has really been out of reach.
func TestClockJumpsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s seam
		b := clockBed(t, &s, filepath.Join(t.TempDir(), "outbox.db"))
		attempts := 0
		d := b.dispatcher(t, Config{Now: s.now, Poll: time.Hour, Breaker: BreakerPolicy{OpensAfter: 1}}, outside("h", 1, func(context.Context, Delivery) error {
			if attempts++; attempts == 2 {
				s.set(5 * year)
			}
			if attempts < 4 {
				return errRefused
			}
			return nil
		}))
		b.stage(t, event(0))
		time.Sleep(time.Hour)
		synctest.Wait()
		if row := b.rows(t)[0]; row.State != "dispatched" {
			t.Errorf("%+v", row)
		}
		_ = d.Stop(context.Background())
		b.close()
	})
}
