package realtime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// onlyBye checks that a stream ended with nothing but the reason, and left the client's place where it was.
func (e *ear) onlyBye(t *testing.T, reason, place string) {
	t.Helper()
	events := e.ended()
	if len(events) != 1 || events[0].name != "bye" || events[0].data != `{"reason":"`+reason+`"}` || events[0].id != place {
		t.Errorf("end of the stream: %+v, want a bye for %s at %s", events, reason, place)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	sites := map[string]func(*testing.T, Config) *site{"HTTP/1.1": newSite, "HTTP/2": newHTTP2Site}
	for name, site := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t, Config{})
			gone := s.open(t, "ann", "a")
			stays := s.open(t, "bob", "a")
			place := s.hub.Stats().Epoch + "-0"
			if n := s.hub.Revoke(Grant{User: "ann"}, "signed-out"); n != 1 {
				t.Errorf("%d revoked, want 1", n)
			}
			s.hub.Revoke(Grant{Tenant: "t1", User: "ann"}, "again") // it is being told already
			s.publish(t, note("a", 1))
			stays.want("notification")
			gone.onlyBye(t, "signed-out", place)
			eventually(t, "the revoked connection is gone", func() bool { return s.hub.Stats().Connections == 1 })
			if st := s.hub.Stats(); st.Closed["signed-out"] != 1 || len(st.Closed) != 1 || st.ByUser["ann"] != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// Of what is on its way when access ends, only the event whose writing had begun arrives, then the reason; and whoever does not even
// take that is gone soon.
func TestRevokeWhileAnEventIsWritten(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]bool{"a client that reads on": true, "a client that hangs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := inBubble(t, Config{}, nil)
				topics := topicsOf(credits + 4) // some are on their way, some wait
				e := s.listenBy(t, client, s.request(t.Context(), "ann", topics...))
				e.want("hello")
				for version := int64(1); s.hub.Stats().Queued < 4; version++ {
					for _, topic := range topics {
						s.publish(t, big(topic, version))
					}
					synctest.Wait()
				}
				began := time.Now()
				s.hub.Revoke(Grant{User: "ann"}, "revoked")
				if took := time.Since(began); took != 0 {
					t.Errorf("revoking waited %v for a client", took)
				}
				whole := s.hub.Stats().Delivered - credits // those before had been written
				if reads {
					events := e.ended()
					if n := len(notifications(t, events)); uint64(n) > whole+1 {
						t.Errorf("%d notifications arrived, %d had been written and one begun", n, whole)
					}
					if last := events[len(events)-1]; last.name != "bye" || last.data != `{"reason":"revoked"}` {
						t.Errorf("the last event is %s %s", last.name, last.data)
					}
				}
				for s.hub.Stats().Connections > 0 {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(began); took > 2*lastGasp || reads && took > time.Millisecond {
					t.Errorf("the connection was there for %v more", took)
				}
				if !reads { // half an event is no event, and the reason no part of it
					for {
						ev, err := e.parser.next()
						if err != nil {
							break
						}
						if ev.name != "notification" || !strings.HasSuffix(ev.data, "}}") {
							t.Errorf("event %s %.40s…", ev.name, ev.data)
						}
					}
				}
			})
		})
	}
}

// A hung stream of HTTP/2 that is revoked ends soon, too; the others of its TCP connection go on.
func TestRevokeHungHTTP2Stream(t *testing.T) {
	t.Parallel()
	s := newHTTP2Site(t, Config{WriteTimeout: time.Hour})
	s.srv.Client().Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	s.open(t, "ann", "a")
	healthy := s.open(t, "bob", "b")
	version := int64(0)
	eventually(t, "the stream hangs", func() bool {
		version++
		s.publish(t, big("a", version), note("b", version))
		healthy.want("notification")
		return s.hub.Stats().Lag > 100*time.Millisecond
	})
	s.hub.Revoke(Grant{User: "ann"}, "revoked")
	eventually(t, "the hung stream is closed", func() bool { return s.hub.Stats().Closed["revoked"] == 1 })
	s.publish(t, note("b", version+1))
	healthy.want("notification")
	if n := s.hub.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestPermitAtDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{Permit: func(sub Subscriber, topic Topic) bool { return topic != "b" }})
	e := s.open(t, "ann", "a", "b")
	s.publish(t, note("a", 1))
	place := e.want("notification").id
	s.publish(t, note("b", 1))
	e.onlyBye(t, ReasonForbidden, place)
	eventually(t, "it is counted", func() bool { return s.hub.Stats().Closed[ReasonForbidden] == 1 })
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{Heartbeat: time.Hour}, nil)
		s.srvHandler(func(r *http.Request, topics []Topic) (Principal, error) {
			return Principal{User: "ann", Tenant: "t1", Expires: time.Now().Add(10 * time.Minute)}, nil
		})
		began := time.Now()
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
		e.onlyBye(t, ReasonExpired, e.want("hello").id)
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("access lasted for %v", took)
		}
		synctest.Wait()
		if st := s.hub.Stats(); st.Closed[ReasonExpired] != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// What Revalidate says is what the client is told and the operator sees: a store that cannot be asked is not a user who is shut out.
func TestRevalidationSaysWhy(t *testing.T) {
	t.Parallel()
	for reason, err := range map[string]error{
		ReasonExpired: errors.Join(ErrUnauthenticated, errors.New("the session has ended")), ReasonForbidden: ErrForbidden,
		ReasonUnchecked: errors.New("the store is away"),
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := inBubble(t, Config{Heartbeat: time.Hour, Revalidate: func(context.Context, Subscriber) (time.Time, error) {
					return time.Time{}, err
				}}, nil)
				e := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
				e.onlyBye(t, reason, e.want("hello").id)
				synctest.Wait()
				if st := s.hub.Stats(); st.Closed[reason] != 1 || len(st.Closed) != 1 {
					t.Errorf("stats %+v", st)
				}
			})
		})
	}
}

// A client that lost its access is told once more by the status, may renew it once, and stops. One that got it back goes on from
// its place, without a wait that grows.
func TestWatchAfterAccessEnded(t *testing.T) {
	t.Parallel()
	bye := func(reason string) step {
		return step{status: 200, open: true, body: helloEvent("e", 5, false) + "event: bye\ndata: {\"reason\":\"" + reason + "\"}\n\n"}
	}
	for _, reason := range []string{ReasonExpired, ReasonForbidden, "signed-out", "revoked"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{bye(reason), {status: 401}, bye(reason), {status: 401}, {status: 401}}}
				d := watching(s)
				var causes []error
				d.client.OnDown = func(cause error, _ time.Duration) { causes = append(causes, cause) }
				refreshes := 0
				d.client.Refresh = func(context.Context) (http.Header, error) {
					refreshes++
					return http.Header{"Authorization": {"Bearer new"}}, nil
				}
				began := time.Now()
				var status *StatusError
				if err := d.watch(t.Context()); !errors.As(err, &status) || status.Status != 401 {
					t.Errorf("ended with %v", err)
				}
				if len(s.requests) != 5 || refreshes != 2 {
					t.Errorf("%d requests and %d refreshes; want 5, and one refresh for each connection that stood", len(s.requests), refreshes)
				}
				if took := time.Since(began); took > 2*time.Second { // it reads no further than the bye, though the connection stays open
					t.Errorf("took %v", took)
				}
				var said *ByeError
				if len(causes) != 2 || !errors.As(causes[0], &said) || said.Reason != reason {
					t.Errorf("told of %v", causes)
				}
				if got := s.requests[2].Header.Get("Last-Event-ID"); got != "e-5" {
					t.Errorf("came back at %q", got)
				}
			})
		})
	}
}

// A server that lets a client in and sends it away, over and over, is asked less and less often.
func TestWatchBacksOffFromAServerThatSendsItAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := step{status: 200, body: helloEvent("e", 0, false) + "event: bye\ndata: {\"reason\":\"forbidden\"}\n\n"}
		s := &script{steps: []step{}}
		for range 30 {
			s.steps = append(s.steps, away)
		}
		s.steps = append(s.steps, stop)
		if err := watching(s).watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		longest := time.Duration(0)
		for _, wait := range s.waits() {
			longest = max(longest, wait)
		}
		if longest < 10*time.Second {
			t.Errorf("the longest of 30 waits is %v", longest)
		}
	})
}

// The whole way: the hub takes access away, the client is told, asks once more, and stops.
func TestRevokedClientStops(t *testing.T) {
	t.Parallel()
	var allowed = make(chan struct{})
	s := newSite(t, Config{})
	s.srvHandler(func(r *http.Request, topics []Topic) (Principal, error) {
		select {
		case <-allowed:
			return Principal{}, ErrUnauthenticated
		default:
			return Principal{User: "ann", Tenant: "t1"}, nil
		}
	})
	var causes []error
	started := make(chan struct{})
	c := &Client{URL: s.url, HTTP: s.srv.Client(), MinBackoff: time.Millisecond, OnGap: func(Gap) { close(started) },
		OnDown: func(cause error, _ time.Duration) { causes = append(causes, cause) }}
	done := make(chan error, 1)
	go func() { done <- c.Watch(t.Context(), []Topic{"a"}, func(Notification) {}) }()
	<-started
	close(allowed)
	s.hub.Revoke(Grant{Tenant: "t1"}, "signed-out")
	var status *StatusError
	if err := <-done; !errors.As(err, &status) || status.Status != 401 || status.Code != "unauthenticated" {
		t.Errorf("ended with %v", err)
	}
	var bye *ByeError
	if len(causes) != 1 || !errors.As(causes[0], &bye) || bye.Reason != "signed-out" {
		t.Errorf("told of %v", causes)
	}
}

// The last words are written through whatever the handler is wrapped in, once, as a whole event.
func TestGuardDismiss(t *testing.T) {
	t.Parallel()
	body, done := serveLine(t, func(l *line) {
		if err := l.offer(frame{id: "1", name: "a", data: []byte("x")}); err != nil {
			t.Error(err)
		}
		l.dismiss(frame{name: "bye", data: []byte("y")})
		l.dismiss(frame{name: "bye", data: []byte("z")})
	}, func() { t.Error("something was flushed") })
	if got, err := io.ReadAll(body); err != nil || string(got) != "event: bye\ndata: z\n\n" {
		t.Errorf("written: %q, %v", got, err)
	}
	<-done
}
