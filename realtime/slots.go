package realtime

import "slices"

// slots hold what a connection has yet to be told: at most one notification for each of its topics, the newest. They are what
// bounds the memory of a slow client by its topics instead of by how slow it is.
//
// A slot keeps its place when a newer notification replaces the one in it, so a topic that changes all the time neither
// starves nor is starved by the others.
type slots struct {
	queue []slot
	// reached is the sequence up to which every notification for this connection has been pushed.
	reached uint64
}

type slot struct {
	// first is the sequence with which the slot became dirty; the queue rises by it.
	first uint64
	*published
}

// push puts p into its topic's slot and reports whether another notification became superfluous by it.
func (s *slots) push(p *published) (coalesced bool) {
	s.reached = max(s.reached, p.seq)
	for i := range s.queue {
		if s.queue[i].key == p.key {
			if newer(s.queue[i].note, p.note) {
				s.queue[i].published = p
			}
			return true
		}
	}
	s.queue = append(s.queue, slot{first: p.seq, published: p})
	return false
}

// pop takes the slot that has been dirty for longest.
func (s *slots) pop() (*published, bool) {
	if len(s.queue) == 0 {
		return nil, false
	}
	p := s.queue[0].published
	s.queue = slices.Delete(s.queue, 0, 1)
	if len(s.queue) == 0 {
		s.queue = nil // an idle connection holds no slots
	}
	return p, true
}

// cursor is the sequence after which a client that has received everything popped so far has to resume. It is not the
// sequence of the notification popped last: an older one of another topic may still be waiting.
func (s *slots) cursor() uint64 {
	if len(s.queue) > 0 {
		return s.queue[0].first - 1
	}
	return s.reached
}

func (s *slots) clear() { s.queue = nil }
