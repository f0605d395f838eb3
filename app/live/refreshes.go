package live

import (
	"net/http"
	"strings"
	"sync"

	"github.com/posthorn/posthorn/app/access"
)

// waitingFor is how many refreshes may wait for each that may run. A browser with many tabs sends them together; beyond it, it is told to come again.
const waitingFor = 16

// Refreshes bounds the refresh queries that one session has in flight (P48): a burst of notifications to many tabs must not keep the readers from
// everybody else. Those beyond the bound wait for a place, in the order of their coming, and for no longer than their clients do.
type Refreshes struct {
	most func() int

	mu       sync.Mutex
	sessions map[string]*places
}

// places are those of one session. They exist while one is taken.
type places struct {
	running int
	waiting []chan struct{}
}

// NewRefreshes bounds each session to most queries at once, asked at each request.
func NewRefreshes(most func() int) *Refreshes {
	return &Refreshes{most: most, sessions: map[string]*places{}}
}

// Bound has next serve a session's queries within the bound. full answers those for which not even a place to wait is left.
func (l *Refreshes) Bound(next, full http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, ok := access.From(r.Context())
		if !ok || by.SessionID == "" || r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/v1/events" {
			next.ServeHTTP(w, r)
			return
		}
		switch l.enter(r, by.SessionID) {
		case entered:
			defer l.leave(by.SessionID)
			next.ServeHTTP(w, r)
		case turnedAway:
			full.ServeHTTP(w, r)
		case gone: // nobody is there to be answered
		}
	})
}

type entry int

const (
	entered entry = iota
	turnedAway
	gone // the client went while it waited
)

func (l *Refreshes) enter(r *http.Request, session string) entry {
	l.mu.Lock()
	p := l.sessions[session]
	if p == nil {
		p = &places{}
		l.sessions[session] = p
	}
	most := l.most()
	if p.running < most {
		p.running++
		l.mu.Unlock()
		return entered
	}
	if len(p.waiting) >= most*waitingFor {
		l.mu.Unlock()
		return turnedAway
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return entered
	case <-r.Context().Done():
	}
	l.mu.Lock()
	for i, other := range p.waiting {
		if other == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			l.mu.Unlock()
			return gone
		}
	}
	l.mu.Unlock()
	l.leave(session) // the turn came as the client went
	return gone
}

// leave gives the place to who has waited for longest.
func (l *Refreshes) leave(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.sessions[session]
	if len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		return
	}
	if p.running--; p.running == 0 {
		delete(l.sessions, session)
	}
}
