package ui

import (
	"fmt"
	"net/http"
	"time"
)

// showDesk is a branch on a busy afternoon.
func (a *appliance) showDesk(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	loans := []map[string]any{}
	for i, title := range []string{"Moby-Dick; or, The Whale", "The Periodic Table", "Middlemarch", "Invisible Cities", "The Left Hand of Darkness", "A Field Guide to Lichens of the Northern Coasts and Islands"} {
		loan := map[string]any{"id": fmt.Sprintf("l%d", i), "title": title, "work": fmt.Sprintf("w%d", i), "copy": fmt.Sprintf("C-%d", 204+i), "member": fmt.Sprintf("M-%d", 17+i),
			"borrowed_at": now.Add(-time.Duration(i*i*7) * time.Hour), "due_at": now.Add(time.Duration(20-9*i) * 24 * time.Hour), "returned_at": nil, "renewals": 0, "overdue": i > 3, "version": i}
		if i == 1 {
			loan["returned_at"] = now.Add(-time.Minute)
		}
		loans = append(loans, loan)
	}
	advisory := map[string]string{"mode": "advisory", "authority": "journeys/fulfil-a-reservation"}
	answer(w, 200, map[string]any{"on_loan": 214, "overdue": 2, "latest": loans, "freshness": map[string]string{"mode": "immediate"}, "reservations": []map[string]any{
		{"id": "r1", "title": "The Periodic Table", "work": "w1", "member": "M-90", "state": "ready", "copy": "C-205", "placed_at": now.Add(-50 * time.Hour), "pickup_until": now.Add(60 * time.Hour)},
		{"id": "r2", "title": "Middlemarch", "work": "w2", "member": "M-4", "state": "waiting", "placed_at": now.Add(-3 * time.Hour), "position": map[string]any{"number": 1, "freshness": advisory}},
		{"id": "r3", "title": "Middlemarch", "work": "w2", "member": "M-311", "state": "waiting", "placed_at": now.Add(-time.Hour), "position": map[string]any{"number": 2, "freshness": advisory}},
	}})
}

func (a *appliance) showStatistics(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, map[string]any{"freshness": map[string]string{"mode": "advisory", "authority": "reactions/count-loans"}, "works": []map[string]any{
		{"work": "w2", "title": "Middlemarch", "borrowed": 1204, "returned": 1199}, {"work": "w0", "title": "Moby-Dick; or, The Whale", "borrowed": 871, "returned": 871},
	}})
}
