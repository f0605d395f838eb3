package realtime

// Grant names what connections rest on: those that agree with each of its fields that is set. A Grant of which nothing is set
// names none.
type Grant struct {
	// Connection is a Subscriber.ID.
	Connection string
	// Session, APIToken, User and Tenant are those of the Principal.
	Session, APIToken, User, Tenant string
}

func (g Grant) names() [aspects]string {
	return names(&Principal{User: g.User, Tenant: g.Tenant, Session: g.Session, APIToken: g.APIToken})
}

// covers reports whether a connection rests on the grant.
func (g Grant) covers(s *Subscriber) bool {
	agrees := func(field, with string) bool { return field == "" || field == with }
	return g != (Grant{}) && agrees(g.Connection, s.ID) && agrees(g.Session, s.Session) && agrees(g.APIToken, s.APIToken) &&
		agrees(g.User, s.User) && agrees(g.Tenant, s.Tenant)
}

// revocations are the grants that were taken away last. A request that was authorized before one of them and is admitted after
// it may rest on what is gone.
type revocations struct {
	count uint64
	last  [64]Grant
}

func (r *revocations) add(g Grant) {
	r.last[r.count%uint64(len(r.last))] = g
	r.count++
}

// since reports whether one that came when count was already n may concern s. More than are remembered concern everybody.
func (r *revocations) since(n uint64, s *Subscriber) bool {
	size := uint64(len(r.last))
	if r.count-n > size {
		return true
	}
	for ; n < r.count; n++ {
		if r.last[n%size].covers(s) {
			return true
		}
	}
	return false
}

// Revoke closes the connections that rest on a grant, at once: nothing that is queued for them is delivered any more but a bye
// with the reason; only an event whose writing had begun may still arrive before it. It waits for no client, and none that hangs
// stays for longer than a second or two. A request that was authorized before the call and would be admitted after it is authorized
// again. It costs what those connections cost, however many others there are. reason is counted in Stats.Closed, so it should be
// one of a few words. It returns the number of connections closed.
func (h *Hub) Revoke(g Grant, reason string) int {
	h.mu.Lock()
	h.revoked.add(g)
	found := h.roster.find(g)
	h.mu.Unlock()
	for _, c := range found {
		c.revoke(reason)
	}
	return len(found)
}
