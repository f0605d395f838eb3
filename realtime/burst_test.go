package realtime

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
)

func topicsOf(n int) []Topic {
	topics := make([]Topic, n)
	for i := range topics {
		topics[i] = Topic(fmt.Sprintf("messages/%03d", i))
	}
	return topics
}

// untilNewest reads until the newest version of every topic has arrived.
func (e *ear) untilNewest(want map[Topic]int64) error {
	missing := len(want)
	seen := map[Topic]int64{}
	for missing > 0 {
		ev, err := e.parser.next()
		if err != nil {
			return fmt.Errorf("read event with %d topics to come: %w", missing, err)
		}
		if ev.name != "notification" {
			continue
		}
		var n Notification
		if err := json.Unmarshal([]byte(ev.data), &n); err != nil {
			return err
		}
		if n.Version < seen[n.Topic] {
			return fmt.Errorf("version %d of %s after %d", n.Version, n.Topic, seen[n.Topic])
		}
		seen[n.Topic] = n.Version
		if n.Version == want[n.Topic] {
			missing--
		}
	}
	return nil
}

// 3,000 changes over 200 topics, as fast as they can be published, to 200 clients with 32 topics each.
func TestBurstReachesEveryClient(t *testing.T) {
	t.Parallel()
	const clients, changes, each = 200, 3000, 32
	topics := topicsOf(200)
	s := newSite(t, Config{MaxPerUser: clients, WriteTimeout: time.Hour})
	ears, mine := make([]*ear, clients), make([][]Topic, clients)
	for i := range ears {
		for j := range each {
			mine[i] = append(mine[i], topics[(i*7+j)%len(topics)])
		}
		ears[i] = s.open(t, "ann", mine[i]...)
	}
	newest := map[Topic]int64{}
	for i := range changes {
		topic := topics[i%len(topics)]
		newest[topic] = int64(i + 1)
		s.publish(t, note(topic, int64(i+1)))
	}
	var all sync.WaitGroup
	for i, e := range ears {
		want := map[Topic]int64{}
		for _, topic := range mine[i] {
			want[topic] = newest[topic]
		}
		all.Go(func() {
			if err := e.untilNewest(want); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if st := s.hub.Stats(); st.Connections != clients || len(st.Closed) != 0 {
		t.Errorf("a burst closed connections: %d left, closed %v", st.Connections, st.Closed)
	}
}

func TestHungClientsHarmNobody(t *testing.T) {
	t.Parallel()
	for _, hung := range []int{1, 20} {
		t.Run(fmt.Sprint(hung), func(t *testing.T) {
			t.Parallel()
			const healthy, rounds = 5, 10
			topics := topicsOf(16)
			s := newSite(t, Config{MaxPerUser: 100, WriteTimeout: time.Hour}) // the hung stay for the whole test
			for range hung {
				s.deaf(t, "hung", topics...)
			}
			ears := make([]*ear, healthy)
			for i := range ears {
				ears[i] = s.open(t, "ann", topics...)
			}
			// Each round is larger than what a hung client's buffers hold, and ends when every healthy client has the newest of
			// every topic: they keep up whatever the hung ones do.
			version := int64(0)
			for range rounds {
				want := map[Topic]int64{}
				for _, topic := range topics {
					version++
					want[topic] = version
					s.publish(t, big(topic, version))
				}
				var all sync.WaitGroup
				for _, e := range ears {
					all.Go(func() {
						if err := e.untilNewest(want); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if t.Failed() {
					return
				}
			}
			st := s.hub.Stats()
			if st.Connections != hung+healthy {
				t.Errorf("%d connections, want %d", st.Connections, hung+healthy)
			}
			if bound := hung * len(topics); st.Queued == 0 || st.Queued > bound {
				t.Errorf("%d notifications queued for hung clients, want 1 to %d", st.Queued, bound)
			}
			if st.Lag == 0 {
				t.Error("the lag of hung clients does not show")
			}
		})
	}
}
