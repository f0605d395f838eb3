package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// world is what a watch looks at; tests change it.
type world struct {
	mu      sync.Mutex
	lanes   []outbox.LaneBacklog
	down    error
	used    int64
	lost    int64
	missing int
	changes []alerts.Alert
}

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// watch starts a watch over the world; it ends with the test.
func (w *world) watch(t *testing.T, observe func(alerts.Alert)) *alerts.Watch {
	t.Helper()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	watch := alerts.New(alerts.Config{
		Records: func() *records.Set { return set },
		Backlog: func(context.Context) (outbox.Backlog, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return outbox.Backlog{Lanes: slices.Clone(w.lanes)}, w.down
		},
		Down:    func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.down },
		Room:    func() (int64, int64) { w.mu.Lock(); defer w.mu.Unlock(); return w.used, 1000 },
		Lost:    w.lost,
		Missing: func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.missing },
		Tenant: func(h outbox.HandlerName) outbox.TenantID {
			if h == "far" {
				return "branch"
			}
			return outbox.MainTenant
		},
		Observe: func(a alerts.Alert) {
			w.set(func(w *world) { w.changes = append(w.changes, a) })
			if observe != nil {
				observe(a)
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { watch.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return watch
}

func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []string{}
	for _, a := range w.changes {
		list = append(list, string(a.State)+" "+a.ID+" "+string(a.Handler))
	}
	return list
}

// lane is a lane with a value of one indicator.
func lane(name outbox.HandlerName, change func(*outbox.LaneBacklog)) []outbox.LaneBacklog {
	l := outbox.LaneBacklog{Handler: name}
	change(&l)
	return []outbox.LaneBacklog{l}
}

func rate(r float64) *float64 { return &r }

// TestEachMeasureRaisesAndClears breaches each threshold, for half a minute as the settings say, and heals it.
func TestEachMeasureRaisesAndClears(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id, runbook string
		handler     outbox.HandlerName
		breach      func(*world)
	}{
		{"alert-oldest-pending-age", "store-outage", "shop", func(w *world) {
			w.lanes = lane("shop", func(l *outbox.LaneBacklog) { l.Pending, l.OldestPending = 1, time.Minute })
		}},
		{"alert-dead-letters", "recover-dead-letters", "shop", func(w *world) { w.lanes = lane("shop", func(l *outbox.LaneBacklog) { l.Failed = 1 }) }},
		{"alert-failure-rate", "recover-dead-letters", "shop", func(w *world) { w.lanes = lane("shop", func(l *outbox.LaneBacklog) { l.Success5m = rate(0.98) }) }},
		{"alert-unclaimed", "unclaimed-deliveries", "gone", func(w *world) {
			w.lanes = lane("gone", func(l *outbox.LaneBacklog) { l.Hold, l.Pending = outbox.Unregistered, 3 })
		}},
		{"alert-store-outage", "store-outage", "", func(w *world) { w.down = outbox.ErrStoreIO }},
		{"alert-size-budget", "disk-full", "", func(w *world) { w.used = 800 }},
		{"alert-outbox-incomplete", "outbox-incomplete", "", func(w *world) { w.missing = 1 }},
		{"alert-clock-untrusted", "clock-untrusted", "", func(w *world) { w.lanes = lane("shop", func(l *outbox.LaneBacklog) { l.Hold = outbox.ClockUntrusted }) }},
	} {
		t.Run(test.id, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(123 * time.Nanosecond) // no clock shows whole microseconds
				w := &world{}
				watch := w.watch(t, nil)
				w.set(test.breach)
				time.Sleep(29 * time.Second)
				if raised := watch.Raised(); len(raised) != 0 {
					t.Fatalf("raised too early: %+v", raised)
				}
				time.Sleep(5 * time.Second)
				raised := watch.Raised()
				if len(raised) != 1 || raised[0].ID != test.id || raised[0].Handler != test.handler || raised[0].State != alerts.Raised || raised[0].Value < raised[0].Threshold {
					t.Fatalf("raised %+v", raised)
				}
				if test.runbook != "" && !slices.Contains(raised[0].Runbooks, test.runbook) {
					t.Errorf("runbooks %v, want %s", raised[0].Runbooks, test.runbook)
				}
				if at := raised[0].RaisedAt; at.Nanosecond()%1000 != 0 {
					t.Errorf("raised at %s: times are to the microsecond", at)
				}
				if unit := raised[0].Unit; unit == "duration" {
					t.Errorf("the value is a number of %s, which is no unit", unit)
				}
				if len(raised[0].UseCases) == 0 {
					t.Error("the alert names no use case")
				}
				w.set(func(w *world) { w.lanes, w.down, w.used, w.missing = nil, nil, 0, 0 })
				time.Sleep(58 * time.Second)
				if len(watch.Raised()) != 1 {
					t.Error("cleared too early")
				}
				time.Sleep(5 * time.Second)
				want := []string{"raised " + test.id + " " + string(test.handler), "cleared " + test.id + " " + string(test.handler)}
				if told := w.told(); len(watch.Raised()) != 0 || !slices.Equal(told, want) {
					t.Errorf("told %v, want %v", told, want)
				}
			})
		})
	}
}

// TestALossIsToldUntilTheNextStart: nothing that happens later makes up for it.
func TestALossIsToldUntilTheNextStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{lost: 3}
		watch := w.watch(t, nil)
		time.Sleep(time.Hour)
		raised := watch.Raised()
		if len(raised) != 1 || raised[0].ID != "alert-lost-tail" || raised[0].Value != 3 || !slices.Contains(raised[0].Runbooks, "restore") {
			t.Errorf("raised %+v", raised)
		}
	})
}

// TestAnEdgeDoesNotFlutter: a breach that mends itself raises nothing, and a value between the threshold and four fifths of it clears nothing.
func TestAnEdgeDoesNotFlutter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		watch := w.watch(t, nil)
		age := func(d time.Duration) {
			w.set(func(w *world) {
				w.lanes = lane("shop", func(l *outbox.LaneBacklog) { l.Pending, l.OldestPending = 1, d })
			})
		}
		for range 5 {
			age(2 * time.Minute)
			time.Sleep(20 * time.Second)
			age(0)
			time.Sleep(2 * time.Second)
		}
		if told := w.told(); len(told) != 0 {
			t.Fatalf("short breaches told %v", told)
		}
		age(2 * time.Minute)
		time.Sleep(time.Minute)
		for range 5 {
			age(50 * time.Second)
			time.Sleep(2 * time.Minute)
			age(47 * time.Second)
			time.Sleep(50 * time.Second)
		}
		if told := w.told(); len(told) != 1 || len(watch.Raised()) != 1 {
			t.Errorf("an edge told %v", told)
		}
	})
}

// TestWhatIsHeldIsNotLate: a pause is somebody's wish, a handler that is gone is nobody's; and an alert belongs to the tenant of its handler.
func TestWhatIsHeldIsNotLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		watch := w.watch(t, nil)
		w.set(func(w *world) {
			w.lanes = []outbox.LaneBacklog{
				{Handler: "paused", Hold: "paused by user:ana", Indicators: outbox.Indicators{Pending: 9, OldestPending: time.Hour}},
				{Handler: outbox.Unrouted, Hold: outbox.NoRoute, Indicators: outbox.Indicators{Pending: 9, OldestPending: time.Hour}},
				{Handler: "far", Indicators: outbox.Indicators{Failed: 2}},
			}
		})
		time.Sleep(time.Minute)
		raised := watch.Raised()
		if len(raised) != 1 || raised[0].Handler != "far" || raised[0].Tenant != "branch" {
			t.Errorf("raised %+v", raised)
		}
	})
}

// TestAStoreOutageLeavesLanesAsTheyWere: what cannot be read heals nothing.
func TestAStoreOutageLeavesLanesAsTheyWere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{lanes: lane("shop", func(l *outbox.LaneBacklog) { l.Failed = 1 })}
		watch := w.watch(t, nil)
		time.Sleep(time.Minute)
		w.set(func(w *world) { w.lanes, w.down = nil, outbox.ErrStoreIO })
		time.Sleep(5 * time.Minute)
		if raised := watch.Raised(); len(raised) != 2 {
			t.Errorf("raised %+v", raised)
		}
	})
}

// TestTheReceiverIsToldAtLast: a receiver that fails for an hour is told of what is so by then, each change under one id.
func TestTheReceiverIsToldAtLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(time.Hour)
		var got []outbox.Message
		ids, tries := map[outbox.MessageID]bool{}, 0
		n := alerts.NewNotifier(alerts.NotifierConfig{First: time.Second, Cap: time.Minute, Timeout: 15 * time.Second,
			Send: func(ctx context.Context, _ int, m outbox.Message) error {
				tries++
				ids[m.ID] = true
				if time.Now().Before(up) {
					<-ctx.Done() // it hangs, too
					return errors.New("no answer")
				}
				got = append(got, m)
				return nil
			}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { n.Run(ctx) })
		defer running.Wait()
		defer cancel()
		raised := time.Now().UTC()
		a := alerts.Alert{ID: "alert-dead-letters", Handler: "shop", State: alerts.Raised, RaisedAt: raised}
		n.Tell(a)
		n.Tell(alerts.Alert{ID: "alert-store-outage", State: alerts.Raised, RaisedAt: raised})
		time.Sleep(30 * time.Minute)
		if waiting, failure := n.Standing(); waiting != 2 || failure != "no answer" {
			t.Errorf("standing %d %q", waiting, failure)
		}
		cleared := time.Now().UTC()
		a.State, a.ClearedAt = alerts.Cleared, &cleared
		n.Tell(a)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(got) != 2 || len(ids) != 3 || tries < 50 || tries > 200 {
			t.Fatalf("%d told, %d ids, %d tries", len(got), len(ids), tries)
		}
		states := map[string]alerts.State{}
		for _, m := range got {
			var told alerts.Alert
			if err := json.Unmarshal(m.Payload, &told); err != nil || m.Type != alerts.Type {
				t.Fatalf("told %s %s: %v", m.Type, m.Payload, err)
			}
			states[told.ID] = told.State
		}
		if states["alert-dead-letters"] != alerts.Cleared || states["alert-store-outage"] != alerts.Raised {
			t.Errorf("told %v", states)
		}
		if waiting, failure := n.Standing(); waiting != 0 || failure != "" {
			t.Errorf("standing %d %q", waiting, failure)
		}
	})
}
