package sink

// key tells messages apart: a path is a destination's, and ids are unique within one.
type key struct{ path, id string }

// memory is what was handled, bounded: the oldest is forgotten first. It is not safe for concurrent use.
type memory struct {
	limit int
	known map[key]*known
	order []key // a ring once it is full
	next  int
}

type known struct {
	sha256  string // of the first body seen
	fence   int64  // the highest seen
	handled bool
}

func newMemory(limit int) *memory { return &memory{limit: limit, known: map[key]*known{}} }

// meet returns what is known of an entry's message before it, and notes the entry.
func (m *memory) meet(entry Entry) (before known, about *known) {
	k := key{entry.Path, entry.ID}
	about, found := m.known[k]
	if !found {
		about = &known{sha256: entry.SHA256, fence: entry.Fence}
		m.known[k] = about
		m.remember(k)
	}
	before = *about
	about.fence = max(about.fence, entry.Fence)
	return before, about
}

func (m *memory) remember(k key) {
	if len(m.order) < m.limit {
		m.order = append(m.order, k)
		return
	}
	delete(m.known, m.order[m.next])
	m.order[m.next] = k
	m.next = (m.next + 1) % m.limit
}
