package realtime

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The slots of a connection against a model that remembers everything: what is popped is the newest of its topic, no topic is
// lost, each waits for at most one round of the others, and the cursor never promises what is still to come.
func TestSlotsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const topics = 6
		var s slots
		var seq uint64
		newest := map[Topic]int64{}         // version, of all pushed
		dirty := map[Topic]uint64{}         // since which sequence
		waited := map[Topic]int{}           // pops since it became dirty
		delivered := map[Topic]int64{}      // version
		pushes := map[uint64]Notification{} // by sequence
		lastCursor := uint64(0)

		pop := func() {
			p, ok := s.pop()
			if ok != (len(dirty) > 0) {
				t.Fatalf("popped %v with %d dirty", ok, len(dirty))
			}
			if !ok {
				return
			}
			topic := p.note.Topic
			if p.note.Version != newest[topic] {
				t.Fatalf("popped version %d of %s, newest is %d", p.note.Version, topic, newest[topic])
			}
			if waited[topic] >= topics {
				t.Fatalf("%s waited for %d others", topic, waited[topic])
			}
			for other, since := range dirty {
				if since < dirty[topic] {
					t.Fatalf("%s came before %s, which was dirty for longer", topic, other)
				}
				waited[other]++
			}
			delivered[topic] = p.note.Version
			delete(dirty, topic)
			delete(waited, topic)

			cursor := s.cursor()
			if cursor <= lastCursor {
				t.Fatalf("the cursor went from %d to %d", lastCursor, cursor)
			}
			lastCursor = cursor
			for at, n := range pushes {
				if at <= cursor && delivered[n.Topic] < n.Version {
					t.Fatalf("cursor %d promises version %d of %s, delivered is %d", cursor, n.Version, n.Topic, delivered[n.Topic])
				}
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				topic := Topic(fmt.Sprint(rapid.IntRange(1, topics).Draw(t, "topic")))
				seq += rapid.Uint64Range(1, 3).Draw(t, "step")
				// Most versions rise; some come late.
				version := max(newest[topic]+int64(rapid.IntRange(-2, 3).Draw(t, "version")), 1)
				if version < newest[topic] && dirty[topic] == 0 {
					version = newest[topic] // the history keeps late ones from slots that are not dirty
				}
				n := note(topic, version)
				coalesced := s.push(&published{key: key{"t", topic}, seq: seq, note: n})
				if coalesced != (dirty[topic] != 0) {
					t.Fatalf("coalesced is %v", coalesced)
				}
				pushes[seq] = n
				newest[topic] = max(newest[topic], version)
				if dirty[topic] == 0 {
					dirty[topic] = seq
				}
			},
			"pop": func(t *rapid.T) { pop() },
			"": func(t *rapid.T) {
				if len(s.queue) != len(dirty) || len(s.queue) > topics {
					t.Fatalf("%d slots for %d dirty topics", len(s.queue), len(dirty))
				}
			},
		})
		for len(dirty) > 0 {
			pop()
		}
		if s.cursor() != seq {
			t.Fatalf("cursor %d at rest, everything up to %d is delivered", s.cursor(), seq)
		}
	})
}
