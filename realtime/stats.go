package realtime

import (
	"maps"
	"slices"
	"time"
)

// Stats is what a hub is doing. Counters rise for the hub's life.
type Stats struct {
	// Epoch and Published are the two parts of event ids.
	Epoch     string
	Published uint64
	// Connections is the number of live connections. It equals the sockets that are being served.
	Connections int
	// ByUser is the same for each user.
	ByUser map[string]int
	// Topics is how many topics somebody listens to.
	Topics int
	// Queued is how many notifications wait for slow clients, at most one for each topic of each connection.
	Queued int
	// Lag is the longest time for which a client has not taken what was written to it.
	Lag time.Duration
	// Delivered counts notifications handed to connections; Coalesced those that a newer one of their topic made superfluous.
	Delivered uint64
	Coalesced uint64
	// Closed counts connections by the reason they ended for, Refused those that were not admitted.
	Closed  map[string]uint64
	Refused map[string]uint64
}

// Connection is one live connection, for operators.
type Connection struct {
	Subscriber
	// Queued is how many of its topics have a notification waiting.
	Queued int
	// Lag is how long the client has not taken what was written to it.
	Lag time.Duration
	// Delivered and Coalesced count as in Stats.
	Delivered uint64
	Coalesced uint64
}

// Stats reads what the hub is doing.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	s := Stats{
		Epoch: h.history.epoch, Published: h.history.seq, Connections: h.roster.size, ByUser: make(map[string]int, len(h.roster.by[byUser])),
		Topics: len(h.index), Delivered: h.delivered.Load(), Coalesced: h.coalesced.Load(),
		Closed: maps.Clone(h.closed), Refused: maps.Clone(h.refused),
	}
	for user, list := range h.roster.by[byUser] {
		s.ByUser[user] = len(list)
	}
	live := h.roster.all()
	h.mu.Unlock()
	now := h.now()
	for _, c := range live {
		c.mu.Lock()
		s.Queued += len(c.slots.queue)
		s.Lag = max(s.Lag, c.lag(now))
		c.mu.Unlock()
	}
	return s
}

// Connections lists the live connections, oldest first.
func (h *Hub) Connections() []Connection {
	h.mu.Lock()
	live := h.roster.all()
	h.mu.Unlock()
	now := h.now()
	list := make([]Connection, 0, len(live))
	for _, c := range live {
		list = append(list, c.describe(now))
	}
	slices.SortFunc(list, func(a, b Connection) int { return a.Since.Compare(b.Since) })
	return list
}

func (c *conn) describe(now time.Duration) Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := Connection{
		Subscriber: c.Subscriber, Queued: len(c.slots.queue), Delivered: c.delivered, Coalesced: c.coalesced,
		Lag: c.lag(now),
	}
	one.Topics = slices.Clone(c.Topics)
	return one
}

// lag is how long the client has not taken what was written to it. The caller holds the mutex.
func (c *conn) lag(now time.Duration) time.Duration {
	if !c.open || c.credits == credits {
		return 0
	}
	return now - c.progress
}
