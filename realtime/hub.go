package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Hub takes notifications after a commit and tells the connections that listen to their topics.
type Hub struct {
	cfg   Config
	began time.Time
	guard *guard

	mu       sync.Mutex
	history  history // its epoch never changes and is read without the mutex
	index    map[key][]*conn
	pending  map[key]*published // published, not yet fanned out; the newest of each topic that somebody listens to
	fanning  bool
	roster   roster
	revoked  revocations
	draining bool          // nobody is admitted any more
	empty    chan struct{} // closed when a draining hub has no connection left
	closed   map[string]uint64
	refused  map[string]uint64

	fanned    atomic.Uint64 // everything up to this sequence has been pushed to its connections
	delivered atomic.Uint64
	coalesced atomic.Uint64
}

// NewHub makes a hub, with an epoch of its own. It starts nothing that would have to be stopped.
func NewHub(cfg Config) (*Hub, error) {
	cfg.fill()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("make hub: %w", err)
	}
	return &Hub{
		cfg: cfg, began: time.Now(), guard: newGuard(cfg.WriteTimeout), history: newHistory(cfg.History), roster: newRoster(),
		index: map[key][]*conn{}, pending: map[key]*published{}, empty: make(chan struct{}),
		closed: map[string]uint64{}, refused: map[string]uint64{},
	}, nil
}

// now is the time since the hub began. Connections keep many times, which are a third of the size in this form.
func (h *Hub) now() time.Duration { return time.Since(h.began) }

// Publish notifies the tenant's subscribers. Call it after the commit, never before. It does not wait for any client: it notes
// the notifications and returns, and another goroutine tells the connections.
//
// The error names notifications that are refused for their form, a fault of the program; the others are published.
func (h *Hub) Publish(tenant string, notifications ...Notification) error {
	var refused []error
	for _, n := range notifications {
		data, err := encode(n, h.cfg.MaxEventBytes)
		if err != nil {
			refused = append(refused, fmt.Errorf("publish notification of %.80q: %w", n.Topic, err))
			continue
		}
		h.publish(key{tenant, n.Topic}, n, data)
	}
	return errors.Join(refused...)
}

func (h *Hub) publish(k key, n Notification, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.history.add(k, n, data)
	if p == nil {
		h.coalesced.Add(1)
		return
	}
	if len(h.index[k]) > 0 {
		waiting := h.pending[k]
		if waiting != nil {
			h.coalesced.Add(1)
		}
		// A late one may have passed the history, where a burst has pushed the newer out of it.
		if waiting == nil || newer(waiting.note, n) {
			h.pending[k] = p
		}
	}
	switch {
	case h.fanning:
	case len(h.pending) == 0: // nobody listens
		h.fanned.Store(h.history.seq)
	default:
		h.fanning = true
		go h.fanOut()
	}
}

// fanOut lives for as long as there is something to tell. What is published meanwhile is coalesced by topic, so however far it
// falls behind, what waits is bounded by the topics that have subscribers.
func (h *Hub) fanOut() {
	var batch []*published
	var targets []*conn
	for {
		h.mu.Lock()
		reached := h.history.seq
		if len(h.pending) == 0 {
			h.fanned.Store(reached)
			h.fanning = false
			h.mu.Unlock()
			return
		}
		batch = slices.AppendSeq(batch[:0], maps.Values(h.pending))
		clear(h.pending)
		h.mu.Unlock()

		sortBySeq(batch)
		for _, p := range batch {
			h.mu.Lock()
			targets = append(targets[:0], h.index[p.key]...)
			h.mu.Unlock()
			for _, c := range targets {
				c.push(p)
			}
		}
		clear(batch)
		clear(targets)
		h.fanned.Store(reached)
	}
}

func sortBySeq(ps []*published) {
	slices.SortFunc(ps, func(a, b *published) int { return cmp.Compare(a.seq, b.seq) })
}

// The reasons for which admit refuses, as counted in Stats.Refused.
var (
	errHostFull    = errors.New("host-full")
	errUserFull    = errors.New("user-full")
	errAddressFull = errors.New("address-full")
	errDraining    = errors.New("draining")
	// errRevoked: what the caller was authorized by may have been revoked since.
	errRevoked = errors.New("revoked meanwhile")
)

// admit makes a connection one of the hub's: from here on it is pushed what is published, counted, and found by Revoke. revoked
// is what revocations answered before the caller was authorized.
func (h *Hub) admit(revoked uint64, s Subscriber, w wire, lastEventID string) (*conn, error) {
	c := &conn{
		Subscriber: s, hub: h, wire: w, credits: credits, times: times{end: h.now() + spread(h.cfg.LifeSpan, 0.1)},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.vacancy(revoked, &c.Subscriber); err != nil {
		if !errors.Is(err, errRevoked) {
			h.refused[err.Error()]++
		}
		return nil, err
	}
	c.start = h.history.seq
	c.slots.reached = c.start
	resume := h.history.resume(lastEventID, s.Tenant, s.Topics)
	c.resume = &resume
	for _, p := range c.resume.missed {
		c.slots.push(p)
	}
	h.roster.add(c)
	for _, t := range s.Topics {
		k := key{s.Tenant, t}
		h.index[k] = append(h.index[k], c)
	}
	return c, nil
}

func (h *Hub) vacancy(revoked uint64, s *Subscriber) error {
	switch {
	case h.draining:
		return errDraining
	case h.revoked.since(revoked, s):
		return errRevoked
	case h.roster.size >= h.cfg.MaxConnections:
		return errHostFull
	case h.roster.count(byUser, s.User) >= h.cfg.MaxPerUser:
		return errUserFull
	case h.cfg.MaxPerAddress > 0 && h.roster.count(byAddress, s.Address) >= h.cfg.MaxPerAddress:
		return errAddressFull
	}
	return nil
}

func (h *Hub) revocations() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revoked.count
}

// serve runs an admitted connection to its end.
func (h *Hub) serve(ctx context.Context, c *conn, l *line) {
	defer h.leave(c)
	l.serve(ctx, c)
}

func (h *Hub) leave(c *conn) {
	h.cfg.Logger.Debug("connection closed", "connection", c.ID, "user", c.User, "reason", c.reason)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.roster.remove(c)
	for _, t := range c.Topics {
		k := key{c.Tenant, t}
		list := h.index[k]
		if i := slices.Index(list, c); i >= 0 {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			h.index[k] = list[:last]
		}
		if len(h.index[k]) == 0 {
			delete(h.index, k)
			delete(h.pending, k)
		}
	}
	h.closed[c.reason]++
	if h.draining && h.roster.size == 0 {
		close(h.empty)
	}
}

// Drain refuses newcomers and ends every connection with a bye. Connections that have not taken it when ctx ends are cut, and
// the cause of ctx is returned. Call it when http.Server.Shutdown begins, which would wait for the connections for ever.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.draining {
		h.draining = true
		if h.roster.size == 0 {
			close(h.empty)
		}
	}
	live := h.roster.all()
	h.mu.Unlock()
	for _, c := range live {
		c.finish(ReasonDrain)
	}
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
	}
	for _, c := range live {
		c.abort(ReasonDrain)
	}
	return fmt.Errorf("drain connections: %w", context.Cause(ctx))
}
