package ui

import (
	"encoding/json"
	"net/http"
	"time"
)

// fakeConnections are two streams, one of them behind.
func (a *appliance) listConnections(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer(w, 200, map[string]any{"total": 2, "closed": map[string]int{"client": 41, "life-span": 3}, "refused": map[string]int{}, "freshness": map[string]string{"mode": "immediate"},
		"connections": []map[string]any{
			{"id": "c1", "user": "main/token:laptop", "role": "admin", "by": "session", "topics": []string{"backlog"}, "remote": "127.0.0.1:40112",
				"since": time.Now().Add(-20 * time.Minute), "lag_seconds": 0, "queued": 0, "delivered": 812, "coalesced": 0},
			{"id": "c2", "user": "main/token:kiosk", "role": "viewer", "by": "token", "topics": []string{"backlog", "lending/desk", "messages/a", "messages/b"}, "remote": "10.1.4.77:51034",
				"since": time.Now().Add(-3 * time.Hour), "lag_seconds": 7.2, "queued": 3, "delivered": 90210, "coalesced": 1204},
		}})
}

func (a *appliance) disconnect(w http.ResponseWriter, r *http.Request) {
	var asked struct{ User, Reason string }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disconnected = append(a.disconnected, asked.User+": "+asked.Reason)
	answer(w, 200, map[string]int{"closed": 1})
}
