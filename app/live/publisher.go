package live

import (
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// Publisher notifies of commits. Its methods are called after the commit, never block, and are safe for concurrent use.
type Publisher struct {
	hub    *realtime.Hub
	logger *slog.Logger

	mu      sync.Mutex
	paces   map[pace]*paced
	stopped bool
}

// New publishes to a hub.
func New(hub *realtime.Hub, logger *slog.Logger) *Publisher {
	return &Publisher{hub: hub, logger: logger, paces: map[pace]*paced{}}
}

// Deliveries is the observer of the dispatcher.
func (p *Publisher) Deliveries(changes []outbox.Change) {
	tenants := map[outbox.TenantID]int64{}
	type key struct {
		tenant  outbox.TenantID
		message outbox.MessageID
	}
	// Of several changes of a message in one commit only the last has anything to say.
	last := make(map[key]outbox.Change, len(changes))
	for _, c := range changes {
		tenants[c.Tenant] = c.Version
		last[key{c.Tenant, c.Message}] = c
	}
	for k, c := range last {
		p.publish(k.tenant, realtime.Notification{
			Topic: messageTopic(k.message), ID: string(k.message), Version: c.Version, Change: string(c.State), Freshness: realtime.Immediate(),
		})
	}
	for tenant, version := range tenants {
		p.soon(pace{tenant, topicBacklog}, version)
	}
}

// Destination notifies of a destination that was created, deleted, paused or resumed: the backlog shows its lane.
func (p *Publisher) Destination(tenant outbox.TenantID, _, _ string) {
	p.soon(pace{tenant, topicBacklog}, 0)
}

func (p *Publisher) publish(tenant outbox.TenantID, n realtime.Notification) {
	if err := p.hub.Publish(string(tenant), n); err != nil {
		p.logger.Error("notification refused", "topic", n.Topic, "error", err)
	}
}

// interval is how often at the most a topic that changes with every commit is notified: a screen shows figures, not a film.
const interval = 200 * time.Millisecond

// pace is a topic of a tenant that changes with every commit.
type pace struct {
	tenant outbox.TenantID
	topic  realtime.Topic
}

// paced holds back what follows too soon. The first change is told at once, and the last one always.
type paced struct {
	version int64
	dirty   bool
}

func (p *Publisher) soon(k pace, version int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.paces[k]; held != nil {
		held.dirty, held.version = true, max(held.version, version)
		return
	}
	if p.stopped {
		return
	}
	p.paces[k] = &paced{version: version}
	p.tell(k, version)
	time.AfterFunc(interval, func() { p.release(k) })
}

func (p *Publisher) release(k pace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.paces[k]
	if !held.dirty || p.stopped {
		delete(p.paces, k)
		return
	}
	held.dirty = false
	p.tell(k, held.version)
	time.AfterFunc(interval, func() { p.release(k) })
}

func (p *Publisher) tell(k pace, version int64) {
	p.publish(k.tenant, realtime.Notification{Topic: k.topic, Version: version, Change: "changed", Freshness: realtime.Immediate()})
}

// Stop ends the pacing; what is published afterwards reaches nobody.
func (p *Publisher) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}
