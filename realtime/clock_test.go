package realtime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeartbeatMovesTheCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{}, nil)
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "quiet"))
		e.want("hello")
		epoch := s.hub.Stats().Epoch
		s.publish(t, note("busy", 1), note("busy", 2))

		got := make(chan string)
		go func() {
			defer close(got)
			for l := lines(e.res.Body); l.Scan(); {
				got <- l.Text()
			}
		}()
		began := time.Now()
		for range 4 {
			for _, want := range []string{": heartbeat", "id: " + epoch + "-2", ""} {
				if line := <-got; line != want {
					t.Errorf("got %q, want %q", line, want)
				}
			}
		}
		if took := time.Since(began); took < 3*13500*time.Millisecond+7500*time.Millisecond || took > 4*15*time.Second {
			t.Errorf("four heartbeats took %v", took)
		}
		e.close()
		for range got {
		}
	})
}

func TestLifeSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{}, nil)
		began := time.Now()
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
		events := e.ended()
		if took := time.Since(began); took < 54*time.Minute || took > 66*time.Minute {
			t.Errorf("lived for %v", took)
		}
		last := events[len(events)-1]
		if last.name != "bye" || last.data != `{"reason":"life-span"}` {
			t.Errorf("last event %+v", last)
		}
		synctest.Wait()
		if st := s.hub.Stats(); st.Closed[ReasonLifeSpan] != 1 || st.Connections != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// A client that does not read is closed when the write time-out has passed, and not before. Others get theirs meanwhile.
func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{Heartbeat: time.Hour}, nil)
		hung := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
		hung.want("hello")
		healthy := s.listenBy(t, client, s.request(t.Context(), "bob", "a")).follow()
		// The transport reads ahead for the hung one, so it takes more than its buffer to hang it.
		for v := range int64(20) {
			s.publish(t, big("a", v+1))
			synctest.Wait()
			if got := healthy.version.Load(); got != v+1 {
				t.Fatalf("the healthy client has version %d, want %d", got, v+1)
			}
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := s.hub.Stats().Connections; n != 2 {
			t.Errorf("%d connections before the time-out", n)
		}
		if lag := s.hub.Stats().Lag; lag < 29*time.Second {
			t.Errorf("lag is %v", lag)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st := s.hub.Stats(); st.Connections != 1 || st.Closed[ReasonLagging] != 1 {
			t.Errorf("after the time-out: %+v", st)
		}
		s.publish(t, note("a", 100))
		synctest.Wait()
		if got := healthy.version.Load(); got != 100 {
			t.Errorf("the healthy client has version %d", got)
		}
	})
}

// A deadline that was armed for one event must not end a connection that is quiet after it.
func TestQuietConnectionsLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{WriteTimeout: time.Second, Heartbeat: 40 * time.Minute}, nil)
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "a")).follow()
		for v := range int64(3) {
			s.publish(t, note("a", v+1))
			time.Sleep(10 * time.Minute)
			if got := e.version.Load(); got != v+1 {
				t.Errorf("got version %d, want %d", got, v+1)
			}
		}
	})
}

// follower is a client that always reads.
type follower struct{ version atomic.Int64 }

func (e *ear) follow() *follower {
	f := &follower{}
	go func() {
		for {
			ev, err := e.parser.next()
			if err != nil {
				return
			}
			for _, n := range notifications(e.t, []streamEvent{ev}) {
				f.version.Store(n.Version)
			}
		}
	}()
	return f
}

func TestRevalidation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls, deny atomic.Int64
		var last atomic.Pointer[time.Time]
		cfg := Config{Revalidate: func(ctx context.Context, sub Subscriber) (time.Time, error) {
			calls.Add(1)
			if _, ok := ctx.Deadline(); !ok || sub.User != "ann" || sub.Session != "s1" {
				t.Errorf("revalidate %+v", sub)
			}
			now := time.Now()
			if before := last.Swap(&now); before != nil && now.Sub(*before) > time.Minute {
				t.Errorf("%v between two revalidations", now.Sub(*before))
			}
			if deny.Load() > 0 {
				return time.Time{}, ErrForbidden
			}
			return time.Time{}, nil
		}}
		s, client := inBubble(t, cfg, nil)
		r := s.request(t.Context(), "ann", "a")
		r.Header.Set("Session", "s1")
		s.listenBy(t, client, r).follow()
		time.Sleep(10 * time.Minute)
		if n := calls.Load(); n < 10 || n > 13 {
			t.Errorf("%d revalidations in ten minutes", n)
		}
		deny.Store(1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := s.hub.Stats(); st.Connections != 0 || st.Closed[ReasonForbidden] != 1 {
			t.Errorf("after access ended: %+v", st)
		}
		n := calls.Load()
		time.Sleep(10 * time.Minute)
		if calls.Load() != n {
			t.Error("a closed connection is still revalidated")
		}
	})
}

// A revalidation that hangs does not outlive its connection.
func TestRevalidationEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked, over atomic.Int64
		s, client := inBubble(t, Config{Revalidate: func(ctx context.Context, _ Subscriber) (time.Time, error) {
			asked.Add(1)
			<-ctx.Done()
			if context.Cause(ctx) == context.Canceled {
				over.Add(1)
			}
			return time.Time{}, nil
		}}, nil)
		s.listenBy(t, client, s.request(t.Context(), "ann", "a")).follow()
		for asked.Load() == 0 {
			time.Sleep(time.Second)
		}
		s.hub.Revoke(Grant{User: "ann"}, "revoked")
		synctest.Wait()
		if asked.Load() != 1 || over.Load() != 1 {
			t.Errorf("asked %d times, %d were over with the connection", asked.Load(), over.Load())
		}
	})
}

// Revalidation may extend the access of a session that is in use, and end it early.
func TestRevalidationMovesExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		end := began.Add(20*time.Minute + 30*time.Second)
		s, client := inBubble(t, Config{Revalidate: func(context.Context, Subscriber) (time.Time, error) {
			next := time.Now().Add(5 * time.Minute)
			if next.After(end) {
				next = end
			}
			return next, nil
		}}, nil)
		s.srvHandler(func(r *http.Request, topics []Topic) (Principal, error) {
			return Principal{User: "ann", Expires: time.Now().Add(5 * time.Minute)}, nil
		})
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
		e.ended()
		if took := time.Since(began); took != end.Sub(began) {
			t.Errorf("access lasted for %v, want %v", took, end.Sub(began))
		}
	})
}

// srvHandler puts another Authorize in place.
func (s *site) srvHandler(authorize func(*http.Request, []Topic) (Principal, error)) {
	s.srv.Config.Handler = &Endpoint{Hub: s.hub, Authorize: authorize}
}

// A request that was authorized is not refused because a hung peer keeps the server busy at shutdown.
func TestDrainWaitsForThoseWhoRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := inBubble(t, Config{}, nil)
		e := s.listenBy(t, client, s.request(t.Context(), "ann", "a"))
		e.want("hello")
		done := make(chan error, 1)
		go func() { done <- s.hub.Drain(context.Background()) }()
		e.want("bye")
		if _, err := e.parser.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after bye: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
