package realtime

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each way for connections to end, many times over, leaves no goroutine and a gauge of zero. The test is not parallel, so that
// what is running is its own.
func TestNothingLeaks(t *testing.T) {
	const n = 24
	topics := topicsOf(8)
	flood := func(t *testing.T, s *site, rounds int) {
		for v := range int64(rounds) {
			for _, topic := range topics {
				s.publish(t, big(topic, v+1))
			}
		}
	}
	open := func(t *testing.T, s *site) []*ear {
		ears := make([]*ear, n)
		for i := range ears {
			ears[i] = s.open(t, "ann", topics...)
		}
		return ears
	}
	deafen := func(t *testing.T, s *site) []net.Conn {
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = s.deaf(t, "hung", topics...)
		}
		return conns
	}
	everybody := Grant{Tenant: "t1"}
	tests := []struct {
		name   string
		cfg    Config
		end    func(t *testing.T, s *site)
		reason string
	}{
		{"client close", Config{}, func(t *testing.T, s *site) {
			for _, e := range open(t, s) {
				e.close()
			}
		}, ReasonClient},
		{"client close in a burst", Config{}, func(t *testing.T, s *site) {
			ears := open(t, s)
			flood(t, s, 20)
			for _, e := range ears {
				e.close()
			}
		}, ReasonClient},
		{"drain", Config{}, func(t *testing.T, s *site) {
			open(t, s)
			flood(t, s, 1)
			if err := s.hub.Drain(context.Background()); err != nil {
				t.Error(err)
			}
		}, ReasonDrain},
		{"revoke", Config{}, func(t *testing.T, s *site) {
			open(t, s)
			flood(t, s, 1)
			s.hub.Revoke(everybody, "revoked")
		}, "revoked"},
		{"hung", Config{WriteTimeout: 50 * time.Millisecond, Heartbeat: 10 * time.Millisecond}, func(t *testing.T, s *site) {
			deafen(t, s)
			flood(t, s, 1)
			eventually(t, "all are closed", func() bool { flood(t, s, 40); return s.hub.Stats().Connections == 0 })
		}, ReasonLagging},
		{"hung in a burst", Config{WriteTimeout: 50 * time.Millisecond}, func(t *testing.T, s *site) {
			deafen(t, s)
			flood(t, s, 200)
		}, ReasonLagging},
		{"hung and drained", Config{}, func(t *testing.T, s *site) {
			deafen(t, s)
			flood(t, s, 200)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_ = s.hub.Drain(ctx)
		}, ReasonDrain},
		{"hung and revoked", Config{}, func(t *testing.T, s *site) {
			deafen(t, s)
			flood(t, s, 200)
			s.hub.Revoke(everybody, "revoked")
		}, "revoked"},
		{"hung and reset", Config{}, func(t *testing.T, s *site) {
			conns := deafen(t, s)
			flood(t, s, 200)
			for _, c := range conns {
				c.Close() // with unread data: a TCP reset
			}
		}, ReasonClient},
		{"life span", Config{LifeSpan: 20 * time.Millisecond}, func(t *testing.T, s *site) {
			for _, e := range open(t, s) {
				e.ended()
			}
		}, ReasonLifeSpan},
		{"not permitted any more", Config{Permit: func(_ Subscriber, topic Topic) bool { return topic != topics[3] }}, func(t *testing.T, s *site) {
			open(t, s)
			flood(t, s, 2)
		}, ReasonForbidden},
		{"expired", Config{RevalidateEvery: 20 * time.Millisecond, Revalidate: func(context.Context, Subscriber) (time.Time, error) {
			return time.Now(), nil
		}}, func(t *testing.T, s *site) {
			open(t, s)
			deafen(t, s)
			flood(t, s, 10)
		}, ReasonExpired},
		{"revalidated in vain", Config{RevalidateEvery: 20 * time.Millisecond, Revalidate: func(context.Context, Subscriber) (time.Time, error) {
			return time.Time{}, errors.New("the store is away")
		}}, func(t *testing.T, s *site) {
			open(t, s)
			deafen(t, s)
			flood(t, s, 10)
		}, ReasonUnchecked},
		{"refused", Config{MaxPerUser: 1}, func(t *testing.T, s *site) {
			e := s.open(t, "ann", topics...)
			for range n {
				res, err := s.srv.Client().Do(s.request(t.Context(), "ann", topics...))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			}
			e.close()
		}, ReasonClient},
		{"everything at once", Config{WriteTimeout: 100 * time.Millisecond, LifeSpan: 150 * time.Millisecond, Heartbeat: 5 * time.Millisecond,
			RevalidateEvery: 10 * time.Millisecond, Revalidate: func(context.Context, Subscriber) (time.Time, error) { return time.Time{}, nil },
		}, func(t *testing.T, s *site) {
			ears, _ := open(t, s), deafen(t, s)
			var all sync.WaitGroup
			all.Go(func() { flood(t, s, 100) })
			all.Go(func() {
				for i, e := range ears {
					if i%3 == 0 {
						e.close()
					}
				}
			})
			for _, g := range []Grant{{User: "ann"}, {User: "hung"}, everybody} {
				all.Go(func() {
					for _, c := range s.hub.Connections() {
						s.hub.Revoke(Grant{Connection: c.ID, User: g.User}, "revoked")
						s.hub.Stats()
					}
					s.hub.Revoke(g, "revoked")
				})
			}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				_ = s.hub.Drain(ctx)
			})
			all.Wait()
		}, ""},
		{"mixed", Config{WriteTimeout: 100 * time.Millisecond}, func(t *testing.T, s *site) {
			ears := open(t, s)
			deafen(t, s)
			flood(t, s, 50)
			for i, e := range ears {
				if i%2 == 0 {
					e.close()
				}
			}
			flood(t, s, 50)
			s.hub.Revoke(Grant{User: "hung"}, "revoked")
			_ = s.hub.Drain(context.Background())
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			cfg := tt.cfg
			if cfg.MaxPerUser == 0 {
				cfg.MaxPerUser = 2 * n
			}
			s := newSite(t, cfg)
			tt.end(t, s)
			eventually(t, "the gauge is zero", func() bool { return s.hub.Stats().Connections == 0 })
			st := s.hub.Stats()
			if st.Topics != 0 || len(st.ByUser) != 0 || st.Queued != 0 {
				t.Errorf("left behind: %+v", st)
			}
			if left := rosterSize(s.hub); left != 0 {
				t.Errorf("%d names left in the roster", left)
			}
			if tt.reason != "" && (len(st.Closed) != 1 || st.Closed[tt.reason] == 0) {
				t.Errorf("closed by %v, want %s", st.Closed, tt.reason)
			}
			s.close()
			goleak.VerifyNone(t, before)
		})
	}
}

func rosterSize(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := h.roster.size
	for _, names := range h.roster.by {
		size += len(names)
	}
	return size
}
