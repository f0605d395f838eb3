package horn_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// target is a receiver that answers as it is told.
type target struct {
	*httptest.Server

	mu       sync.Mutex
	statuses []int         // the next answers; then 204
	gate     chan struct{} // closed: answers come at once
}

func newTarget(t *testing.T) *target {
	t.Helper()
	g := &target{gate: make(chan struct{})}
	close(g.gate)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		gate, status := g.gate, http.StatusNoContent
		if len(g.statuses) > 0 {
			status, g.statuses = g.statuses[0], g.statuses[1:]
		}
		g.mu.Unlock()
		select {
		case <-gate:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		g.CloseClientConnections() // whoever still waits at the gate
		g.Close()
	})
	return g
}

// answer sets the next answers.
func (g *target) answer(statuses ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.statuses = statuses
}

// wait makes answers wait until the returned function is called.
func (g *target) wait() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := make(chan struct{})
	g.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}
