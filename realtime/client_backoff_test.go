package realtime

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: append(slices.Repeat([]step{{}}, 100), stop)}
		d := watching(s)
		if err := d.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		bound, longest := 500*time.Millisecond, time.Duration(0)
		distinct := map[time.Duration]bool{}
		for i, wait := range s.waits() {
			if wait < 0 || wait >= bound {
				t.Errorf("wait %d is %v, bound is %v", i, wait, bound)
			}
			bound = min(2*bound, 30*time.Second)
			longest = max(longest, wait)
			distinct[wait] = true
		}
		if longest < 15*time.Second || len(distinct) < 90 {
			t.Errorf("the jitter is not full: longest %v, %d different", longest, len(distinct))
		}
		if d.downs != 100 {
			t.Errorf("told of %d failures, want 100", d.downs)
		}
	})
}

func TestWatchBackoffStartsAnewAfterAGoodConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failures := slices.Repeat([]step{{}}, 10)
		good := step{status: 200, body: helloEvent("e", 0, false), hold: 10 * time.Second}
		planned := step{status: 200, body: helloEvent("e", 0, false) + "event: bye\ndata: {\"reason\":\"drain\"}\n\n"}
		brief := step{status: 200, body: helloEvent("e", 0, false)}
		for name, tt := range map[string]struct {
			last step
			anew bool
		}{"steady": {good, true}, "planned end": {planned, true}, "brief": {brief, false}} {
			over := false
			for range 20 { // the wait is drawn: one that is long shows that the backoff went on
				s := &script{steps: append(slices.Clone(failures), tt.last, stop)}
				if err := watching(s).watch(t.Context()); err != nil {
					t.Fatal(err)
				}
				if wait := s.waits()[10] - tt.last.hold; wait >= 500*time.Millisecond {
					over = true
				}
			}
			if over == tt.anew {
				t.Errorf("%s: the backoff started anew: %v, want %v", name, !over, tt.anew)
			}
		}
	})
}

func TestWatchWaitsAsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		s := &script{steps: []step{
			{status: 429, header: map[string]string{"Retry-After": "120"}},
			{status: 503, header: map[string]string{"Retry-After": in(10 * time.Minute)}},
			{status: 503, header: map[string]string{"Retry-After": "99999999"}},
			{status: 503, header: map[string]string{"Retry-After": "nonsense"}},
			{status: 200, body: "retry: 45000\n\n" + helloEvent("e", 0, false)},
			{status: 200, body: "retry: 3\n" + helloEvent("e", 0, false)},
			stop,
		}}
		if err := watching(s).watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := s.waits()
		exactly := func(i int, want time.Duration) {
			t.Helper()
			if w[i] != want {
				t.Errorf("wait %d is %v, want %v", i, w[i], want)
			}
		}
		exactly(0, 2*time.Minute)
		if w[1] < 7*time.Minute || w[1] > 8*time.Minute { // two of the ten were over when it was sent
			t.Errorf("wait for a date is %v", w[1])
		}
		exactly(2, time.Hour)
		if w[3] > 30*time.Second {
			t.Errorf("wait after nonsense is %v", w[3])
		}
		exactly(4, 45*time.Second)
		if w[5] > 30*time.Second {
			t.Errorf("wait after a shorter retry is %v", w[5])
		}
	})
}
