package realtime

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shorter := strings.Replace(helloEvent("e", 0, false), "15000", "4000", 1)
		s := &script{steps: []step{
			{status: 200, open: true}, // silent from the start: the heartbeat is as configured
			{status: 200, body: shorter, open: true},
			stop,
		}}
		d := watching(s)
		d.client.MinBackoff, d.client.MaxBackoff = 1, 1 // no wait to speak of
		var causes []error
		d.client.OnDown = func(err error, _ time.Duration) { causes = append(causes, err) }
		if err := d.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := s.waits()
		if w[0].Round(time.Millisecond) != 30*time.Second || w[1].Round(time.Millisecond) != 8*time.Second {
			t.Errorf("gave up silent connections after %v", w)
		}
		for _, err := range causes {
			if !errors.Is(err, errSilent) {
				t.Errorf("cause %v", err)
			}
		}
	})
}

// The time that the caller takes is not the server's silence.
func TestWatchdogLetsTheCallerWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{status: 200, body: helloEvent("e", 0, false) + noteEvent("e", 1, "a", 1) + noteEvent("e", 2, "a", 2)}, stop}}
		d := watching(s)
		n := 0
		if err := d.client.Watch(t.Context(), []Topic{"a"}, func(Notification) { n++; time.Sleep(time.Hour) }); err != nil {
			t.Fatal(err)
		}
		if n != 2 || len(s.requests) != 2 {
			t.Errorf("%d notifications by %d requests", n, len(s.requests))
		}
	})
}
