package realtime

// roster finds connections by what they rest on, so that what ends one session or counts one user's connections looks at no
// others. The hub's mutex guards it.
type roster struct {
	size int
	by   [aspects]map[string][]*conn
}

// aspect is one of the things that connections have in common.
type aspect int

const (
	byUser aspect = iota
	byTenant
	bySession
	byAPIToken
	byAddress
	aspects
)

// names are under what a principal stands. Nothing stands under an empty name.
func names(p *Principal) [aspects]string {
	return [aspects]string{byUser: p.User, byTenant: p.Tenant, bySession: p.Session, byAPIToken: p.APIToken, byAddress: p.Address}
}

func newRoster() roster {
	r := roster{}
	for a := range r.by {
		r.by[a] = map[string][]*conn{}
	}
	return r
}

func (r *roster) add(c *conn) {
	r.size++
	for a, name := range names(&c.Principal) {
		if name != "" {
			c.place[a] = int32(len(r.by[a][name]))
			r.by[a][name] = append(r.by[a][name], c)
		}
	}
}

// remove costs the same however many others stand under the same names: the last of them takes the place.
func (r *roster) remove(c *conn) {
	r.size--
	for a, name := range names(&c.Principal) {
		if name == "" {
			continue
		}
		list, at := r.by[a][name], c.place[a]
		last := len(list) - 1
		if last == 0 {
			delete(r.by[a], name)
			continue
		}
		list[at], list[last].place[a] = list[last], at
		list[last] = nil
		r.by[a][name] = list[:last]
	}
}

// all lists the connections: each has a user.
func (r *roster) all() []*conn {
	list := make([]*conn, 0, r.size)
	for _, of := range r.by[byUser] {
		list = append(list, of...)
	}
	return list
}

// count is how many connections stand under a name.
func (r *roster) count(a aspect, name string) int { return len(r.by[a][name]) }

// find returns the connections that rest on a grant. It looks at no more than those under the rarest of the grant's names, and at all
// where it has none but that of one connection.
func (r *roster) find(g Grant) []*conn {
	var few, found []*conn
	named := false
	for a, name := range g.names() {
		if name != "" && (!named || r.count(aspect(a), name) < len(few)) {
			few, named = r.by[a][name], true
		}
	}
	if !named && g.Connection != "" {
		few = r.all()
	}
	for _, c := range few {
		if g.covers(&c.Subscriber) {
			found = append(found, c)
		}
	}
	return found
}
