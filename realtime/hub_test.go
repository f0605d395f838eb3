package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func notifications(t testing.TB, events []streamEvent) []Notification {
	t.Helper()
	var ns []Notification
	for _, e := range events {
		if e.name != "notification" {
			continue
		}
		var n Notification
		if err := json.Unmarshal([]byte(e.data), &n); err != nil {
			t.Fatal(err)
		}
		ns = append(ns, n)
	}
	return ns
}

func (s *site) publish(t testing.TB, ns ...Notification) {
	t.Helper()
	if err := s.hub.Publish("t1", ns...); err != nil {
		t.Fatal(err)
	}
}

// resume opens a connection that names the last event it has seen.
func (s *site) resume(t testing.TB, lastEventID string, topics ...Topic) (*ear, hello) {
	t.Helper()
	r := s.request(context.Background(), "ann", topics...)
	r.Header.Set("Last-Event-ID", lastEventID)
	e := s.listen(t, r)
	var h hello
	if err := json.Unmarshal([]byte(e.want("hello").data), &h); err != nil {
		t.Fatal(err)
	}
	return e, h
}

func TestResumeFromHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{History: 64})
	e := s.open(t, "ann", "a", "b", "c")
	s.publish(t, note("a", 1))
	last := e.want("notification").id
	e.close()

	s.publish(t, note("b", 1), note("a", 2), note("other", 1), note("a", 3))
	again, h := s.resume(t, last, "a", "b", "c")
	if !h.Resumed {
		t.Error("hello does not say that the history made up for the gap")
	}
	// Only the newest of each topic, in their order.
	first, second := again.want("notification"), again.want("notification")
	got := notifications(t, []streamEvent{first, second})
	if got[0].Topic != "b" || got[0].Version != 1 || got[1].Topic != "a" || got[1].Version != 3 {
		t.Errorf("got %+v", got)
	}
	again.close()

	// Between the two, the cursor promises no more than the first.
	between, h := s.resume(t, first.id, "a", "b", "c")
	if ns := notifications(t, []streamEvent{between.want("notification")}); !h.Resumed || ns[0].Topic != "a" || ns[0].Version != 3 {
		t.Errorf("resumed between: %+v", ns)
	}
	// After both there is nothing to tell.
	after, h := s.resume(t, second.id, "a", "b", "c")
	s.publish(t, note("c", 1))
	if ns := notifications(t, []streamEvent{after.want("notification")}); !h.Resumed || ns[0].Topic != "c" {
		t.Errorf("resumed after: %+v", ns)
	}
}

func TestResetWhereHistoryCannotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{History: 8})
	for v := range int64(20) {
		s.publish(t, note("a", v+1))
	}
	epoch := s.hub.Stats().Epoch
	for id, reason := range map[string]string{
		epoch + "-3":                       resetHistory,
		epoch + "-11":                      resetHistory,
		strings.Repeat("0", 16) + "-15":    resetEpoch,
		epoch + "-21":                      resetCursor,
		epoch + "-":                        resetCursor,
		epoch + "--1":                      resetCursor,
		epoch + "-18446744073709551616":    resetCursor,
		"17":                               resetCursor,
		"what is this":                     resetCursor,
		strings.Repeat("9", 4000):          resetCursor,
		epoch + strings.Repeat("0", 4000):  resetCursor,
		"ümläut-5":                         resetCursor,
		strings.ToUpper(epoch) + "-x":      resetCursor,
		"-5":                               resetCursor,
		strings.Repeat("\t", 1) + "x-y-z-": resetCursor,
	} {
		e, h := s.resume(t, id, "a")
		ev := e.want("reset")
		if h.Resumed || ev.data != `{"reason":"`+reason+`"}` {
			t.Errorf("Last-Event-ID %.60q: %+v %s, want reason %s", id, h, ev.data, reason)
		}
		if ev.id != epoch+"-20" {
			t.Errorf("a reset leaves the cursor at %s", ev.id)
		}
		e.close()
	}
	// The oldest place that the history still answers for.
	e, h := s.resume(t, epoch+"-12", "a")
	if ns := notifications(t, []streamEvent{e.want("notification")}); !h.Resumed || ns[0].Version != 20 {
		t.Errorf("edge of the history: %+v %+v", h, ns)
	}
}

func TestPublicationInTheOtherOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	e := s.open(t, "ann", "a")
	s.publish(t, note("a", 5))
	e.want("notification")
	s.publish(t, note("a", 4), note("a", 6))
	if ns := notifications(t, []streamEvent{e.want("notification")}); ns[0].Version != 6 {
		t.Errorf("got %+v, want version 6 only", ns)
	}
	if s.hub.Stats().Coalesced == 0 {
		t.Error("the superfluous notification is not counted")
	}
}

// What is already queued for a client that does not read must not reach it after the revocation, and the client's handler must
// not wait for the write time-out.
func TestRevokeDropsWhatIsQueued(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	topics := []Topic{"a", "b", "c", "d", "e", "f", "g", "h"}
	deaf := s.deaf(t, "ann", topics...)
	version := int64(0)
	eventually(t, "the client hangs", func() bool {
		version++
		for _, topic := range topics {
			s.publish(t, big(topic, version))
		}
		return s.hub.Stats().Queued == len(topics)
	})
	s.hub.Revoke(Grant{Tenant: "t1"}, "revoked")
	eventually(t, "the connection is gone", func() bool { return s.hub.Stats().Connections == 0 })
	s.publish(t, note("a", version+1))
	last := ""
	for l := lines(deaf); l.Scan(); {
		last = l.Text()
	}
	if strings.Contains(last, fmt.Sprintf(`"version":%d,`, version+1)) {
		t.Errorf("delivered after revocation: %.80s", last)
	}
}

// A session that is revoked between its authorization and its admission must not slip through; what others lose meanwhile is none
// of its business, as long as the hub remembers what that was.
func TestRevokeDuringAuthorization(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		revoke        Grant
		times         int
		status, calls int
	}{
		{"own", Grant{User: "ann"}, 1, 401, 2},
		{"own among others", Grant{User: "ann"}, 40, 401, 2},
		{"another's", Grant{User: "bob"}, 1, 200, 1},
		{"nobody's", Grant{}, 1, 200, 1},
		{"more of others than are remembered", Grant{User: "bob"}, 65, 401, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Config{})
			calls := 0
			s.srvHandler(func(r *http.Request, topics []Topic) (Principal, error) {
				calls++
				if calls > 1 {
					return Principal{}, ErrUnauthenticated
				}
				for range tt.times {
					s.hub.Revoke(tt.revoke, "signed-out")
				}
				return Principal{User: "ann"}, nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res, err := s.srv.Client().Do(s.request(ctx, "ann", "a"))
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			res.Body.Close()
			if res.StatusCode != tt.status || calls != tt.calls {
				t.Errorf("status %d after %d authorizations, want %d after %d", res.StatusCode, calls, tt.status, tt.calls)
			}
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	a, b := s.open(t, "ann", "a"), s.open(t, "bob", "b")
	if err := s.hub.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*ear{a, b} {
		if events := e.ended(); len(events) != 1 || events[0].name != "bye" || events[0].data != `{"reason":"drain"}` {
			t.Errorf("end: %+v", events)
		}
		if e.parser.retry <= 0 || e.parser.retry > 2e9 {
			t.Errorf("retry %v", e.parser.retry)
		}
	}
	res, err := s.srv.Client().Do(s.request(t.Context(), "ann", "a"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("newcomer at a draining hub: %d", res.StatusCode)
	}
	if err := s.hub.Drain(t.Context()); err != nil {
		t.Errorf("draining twice: %v", err)
	}
}

func TestDrainCutsWhoHangs(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	s.deaf(t, "ann", "a")
	version := int64(0)
	eventually(t, "the client hangs", func() bool {
		version++
		s.publish(t, big("a", version))
		return s.hub.Stats().Queued > 0
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := s.hub.Drain(ctx); !errors.Is(err, enough) {
		t.Errorf("drain: %v", err)
	}
	eventually(t, "the connection is gone", func() bool { return s.hub.Stats().Connections == 0 })
}

func TestConnectionsForOperators(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{})
	r := s.request(t.Context(), "ann", "b", "a")
	r.Header.Set("Session", "s1")
	e := s.listen(t, r)
	e.want("hello")
	s.publish(t, note("a", 1))
	e.want("notification")
	list := s.hub.Connections()
	if len(list) != 1 {
		t.Fatalf("%d connections", len(list))
	}
	c := list[0]
	if c.User != "ann" || c.Tenant != "t1" || c.Session != "s1" || len(c.Topics) != 2 || c.Delivered != 1 || c.ID == "" ||
		c.Since.IsZero() || c.Remote == "" {
		t.Errorf("connection %+v", c)
	}
}

// goneWire is that of a client whose stream the library has taken away, before whoever serves it has noticed.
type goneWire struct{ slowWire }

func (*goneWire) offer(frame) error { return errGone }

// What cannot be handed over any more is not counted as delivered, and is no fault of the hub's.
func TestClientGoneBeforeAnybodyNoticed(t *testing.T) {
	t.Parallel()
	hub, err := NewHub(Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := hub.admit(0, Subscriber{Principal: Principal{User: "u", Tenant: "t"}, Topics: []Topic{"a", "b"}}, &goneWire{}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.begin()
	if err := hub.Publish("t", note("a", 1), note("b", 1)); err != nil {
		t.Fatal(err)
	}
	settle(hub)
	beat(c)
	c.ended()
	hub.leave(c)
	if st := hub.Stats(); st.Delivered != 0 || st.Closed[ReasonClient] != 1 || len(st.Closed) != 1 {
		t.Errorf("stats %+v", st)
	}
}
