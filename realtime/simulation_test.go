package realtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowWire is a connection whose client takes frames when the test says so.
type slowWire struct {
	frames []frame
	ended  bool
}

func (w *slowWire) offer(f frame) error { w.frames = append(w.frames, f); return nil }
func (w *slowWire) hangUp()             { w.ended = true }
func (w *slowWire) dismiss(f frame)     { w.ended, w.frames = true, []frame{f} }
func (w *slowWire) cut()                { w.ended, w.frames = true, nil }

// Random publications, slow reading, lost connections and resumptions against a model. Whatever happens, a client that has read
// all there is knows the newest version of each topic, unless it was told by a reset that it has to ask.
func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, simulate)
}

func simulate(t *rapid.T) {
	all := []Topic{"a", "b", "c", "d", "e"}
	mine := all[:4] // somebody else listens to the last, or nobody
	size := rapid.IntRange(1, 12).Draw(t, "history")
	hub, err := NewHub(Config{History: size, Heartbeat: time.Hour}) // the test makes its heartbeats itself
	if err != nil {
		t.Fatal(err)
	}
	truth := map[Topic]int64{} // newest version of each topic
	known := map[Topic]int64{} // what the client knows of
	cursor := ""
	var c *conn
	var w *slowWire

	connect := func() {
		w = &slowWire{}
		c, err = hub.admit(0, Subscriber{Principal: Principal{User: "u", Tenant: "t"}, Topics: mine}, w, cursor)
		if err != nil {
			t.Fatal(err)
		}
		c.begin()
	}
	take := func() bool {
		c.mu.Lock()
		n := len(w.frames)
		var f frame
		if n > 0 {
			f, w.frames = w.frames[0], w.frames[1:]
		}
		c.mu.Unlock()
		if n == 0 {
			return false
		}
		if n > credits {
			t.Fatalf("%d frames on their way, %d credits", n, credits)
		}
		if f.id != "" {
			cursor = f.id
		}
		switch f.name {
		case "hello":
			var h hello
			if err := json.Unmarshal(f.data, &h); err != nil {
				t.Fatal(err)
			}
			if !h.Resumed { // the client asks the query that owns the truth
				maps.Copy(known, truth)
			}
		case "notification":
			var n Notification
			if err := json.Unmarshal(f.data, &n); err != nil {
				t.Fatal(err)
			}
			if n.Topic == all[4] {
				t.Fatalf("told of a topic it does not listen to")
			}
			known[n.Topic] = max(known[n.Topic], n.Version)
		}
		c.flushed()
		return true
	}
	lose := func() {
		c.ended()
		hub.leave(c)
	}
	connect()
	t.Repeat(map[string]func(*rapid.T){
		"publish": func(t *rapid.T) {
			for range rapid.IntRange(1, 8).Draw(t, "burst") {
				topic := rapid.SampledFrom(all).Draw(t, "topic")
				// Commits may reach Publish in the other order.
				version := max(truth[topic]+int64(rapid.IntRange(-1, 2).Draw(t, "version")), 1)
				truth[topic] = max(truth[topic], version)
				if err := hub.Publish("t", note(topic, version)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"publish elsewhere": func(t *rapid.T) {
			if err := hub.Publish("other", note("a", 1000)); err != nil {
				t.Fatal(err)
			}
		},
		"settle":    func(*rapid.T) { settle(hub) },
		"take":      func(*rapid.T) { take() },
		"heartbeat": func(*rapid.T) { beat(c) },
		"lose": func(t *rapid.T) {
			if rapid.Bool().Draw(t, "settled") {
				settle(hub)
			}
			lose()
			if rapid.Bool().Draw(t, "published meanwhile") {
				truth["b"]++
				if err := hub.Publish("t", note("b", truth["b"])); err != nil {
					t.Fatal(err)
				}
			}
			connect()
		},
		"": func(t *rapid.T) {
			st := hub.Stats()
			if st.Connections != 1 || st.Queued > len(mine) || len(hub.history.ring) > size || len(hub.history.latest) > size {
				t.Fatalf("not bounded: %+v, history %d", st, len(hub.history.latest)) // only this goroutine publishes
			}
		},
	})
	settle(hub)
	for take() {
	}
	for _, topic := range mine {
		if known[topic] != truth[topic] {
			t.Fatalf("the client knows version %d of %s, the newest is %d", known[topic], topic, truth[topic])
		}
	}
	// At rest, a heartbeat brings the cursor up to everything published, so a quiet client never falls out of the history.
	beat(c)
	take()
	if want := hub.history.id(hub.history.seq); cursor != want {
		t.Fatalf("cursor at rest is %s, want %s", cursor, want)
	}
	lose()
	if hub.fanned.Load() != hub.history.seq {
		t.Fatal("fan-out stopped before its end")
	}
}

func beat(c *conn) {
	fanned := c.hub.fanned.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heartbeat(fanned)
}

// settle waits until everything published has been fanned out.
func settle(hub *Hub) {
	for busy := true; busy; runtime.Gosched() {
		hub.mu.Lock()
		busy = hub.fanning
		hub.mu.Unlock()
	}
}

func TestHistoryForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	h := newHistory(100)
	for i := range 10_000 {
		h.add(key{"t", Topic(fmt.Sprint(i % 777))}, note("x", int64(i+1)), nil)
	}
	if len(h.latest) != 100 || len(h.ring) != 100 {
		t.Errorf("%d topics, %d places", len(h.latest), len(h.ring))
	}
	if !strings.HasPrefix(h.id(7), h.epoch+"-7") || newHistory(1).epoch == h.epoch {
		t.Error("ids")
	}
}
