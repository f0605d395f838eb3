package ui

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// operated is what the console asked of the operator's routes.
type operated struct {
	filters  []map[string]any // of each bulk replay that was no dry run
	audit    []map[string]any // the newest first
	failNext bool             // the next part of a bulk replay breaks off
	backfill map[string]any
	slice    int // dead letters that one part of a bulk replay does; 0: all
}

func (a *appliance) operateRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/deliveries/{id}/{verb}", a.guard(a.changeDelivery))
	mux.HandleFunc("POST /v1/messages/{id}/resend", a.guard(a.resend))
	mux.HandleFunc("POST /v1/replays", a.guard(a.replays))
	mux.HandleFunc("GET /v1/audit", a.guard(a.showAudit))
	mux.HandleFunc("DELETE /v1/session/others", a.guard(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]int{"ended": 2}) }))
	mux.HandleFunc("POST /v1/destinations/{name}/backfill", a.guard(a.beginBackfill))
	mux.HandleFunc("GET /v1/destinations/{name}/backfill", a.guard(func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer(w, 200, a.operated.backfill)
	}))
}

func reasonOf(w http.ResponseWriter, r *http.Request, into map[string]any) bool {
	if err := json.NewDecoder(r.Body).Decode(&into); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return false
	}
	if reason, _ := into["reason"].(string); strings.Contains(reason, "forbidden") {
		refuse(w, 422, "bad-reason", "Such a change needs its reason.", "", map[string]string{"path": "/reason", "message": "must be 1 to 500 characters on one line"})
		return false
	}
	return true
}

func (a *appliance) record(action, subject string, more map[string]any) {
	entry := map[string]any{"at": time.Now(), "actor": "token:laptop", "action": action, "subject": subject}
	for name, value := range more {
		entry[name] = value
	}
	a.operated.audit = slices.Insert(a.operated.audit, 0, entry)
}

// dead is every dead letter, with its message.
func (a *appliance) dead(each func(m *fakeMessage, d map[string]any)) {
	for _, m := range a.messages {
		for _, d := range m.view["deliveries"].([]any) {
			if d := d.(map[string]any); d["state"] == "dead-letter" {
				each(m, d)
			}
		}
	}
}

func revive(m *fakeMessage, d map[string]any, reason string) {
	replays, _ := d["replays"].([]any)
	d["replays"] = append(replays, map[string]any{"actor": "token:laptop", "reason": reason, "replayed_at": time.Now(),
		"failure": d["failure_class"].(string) + ": " + d["last_error"].(string)})
	d["state"], d["completed_at"], d["next_attempt_at"], d["blocked"], d["held"] = "pending", nil, time.Now(), false, false
	m.state, m.view["state"] = "pending", "pending"
}

func (a *appliance) changeDelivery(w http.ResponseWriter, r *http.Request) {
	in := map[string]any{}
	if !reasonOf(w, r, in) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.messages {
		for _, raw := range m.view["deliveries"].([]any) {
			d := raw.(map[string]any)
			if strconv.Itoa(d["id"].(int)) != r.PathValue("id") {
				continue
			}
			reason := in["reason"].(string)
			switch verb := r.PathValue("verb"); {
			case verb == "replay" && d["state"] == "dead-letter":
				revive(m, d, reason)
				a.record("delivery.replay", m.view["id"].(string), map[string]any{"detail": reason, "handler": d["handler"], "delivery": d["id"], "failure": "rejected: target answered 422"})
			case verb == "skip" && d["state"] == "dead-letter":
				d["failure_class"] = "skipped"
			case verb == "cancel" && d["state"] == "pending":
				d["state"], d["failure_class"], d["last_error"], d["completed_at"] = "dead-letter", "cancelled", "cancelled by token:laptop: "+reason, time.Now()
				m.state, m.view["state"] = "dead-letter", "dead-letter"
			default:
				refuse(w, 409, "wrong-state", "The delivery is processing; this needs one that is "+map[string]string{"cancel": "pending"}[verb]+".", "An attempt runs: its outcome is the target's to say. Look again in a moment.")
				return
			}
			answer(w, 200, map[string]any{"id": d["id"], "message": m.view["id"], "handler": d["handler"], "state": d["state"], "failure_class": d["failure_class"]})
			return
		}
	}
	refuse(w, 404, "no-delivery", "There is no such delivery.", "")
}

func (a *appliance) resend(w http.ResponseWriter, r *http.Request) {
	in := map[string]any{}
	if !reasonOf(w, r, in) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.messages {
		if m.view["id"] != r.PathValue("id") {
			continue
		}
		all := m.view["deliveries"].([]any)
		old := all[slices.IndexFunc(all, func(d any) bool { return d.(map[string]any)["handler"] == in["handler"] })].(map[string]any)
		m.view["deliveries"] = append(all, map[string]any{"id": 9001, "handler": in["handler"], "state": "dispatched", "attempt": 1, "charged": 1, "fence": 50000,
			"created_at": time.Now(), "completed_at": time.Now(), "suppressed": true, "resend_of": old["id"]})
		answer(w, 200, map[string]any{"message": r.PathValue("id"), "deliveries": []int{9001}})
	}
}

func (a *appliance) replays(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Filter         map[string]any
		Reason, Cursor string
		DryRun         bool `json:"dry_run"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.operated.failNext && !in.DryRun && in.Cursor != "" {
		a.operated.failNext = false
		refuse(w, 503, "not-ready", "The store does not answer.", "It tries again by itself.")
		return
	}
	if !in.DryRun {
		a.operated.filters = append(a.operated.filters, in.Filter)
	}
	sums := map[[2]string]int{}
	matched, next := 0, any(nil)
	a.dead(func(m *fakeMessage, d map[string]any) {
		for name, value := range in.Filter {
			text, _ := json.Marshal(d)
			switch {
			case name == "handler" && d["handler"] != value, name == "class" && d["failure_class"] != value, name == "type" && m.view["type"] != value,
				name == "q" && !strings.Contains(string(text)+m.view["id"].(string), value.(string)):
				return
			}
		}
		if !in.DryRun && a.operated.slice > 0 && matched == a.operated.slice {
			next = "further"
			return
		}
		matched++
		sums[[2]string{d["handler"].(string), d["failure_class"].(string)}]++
		if !in.DryRun {
			revive(m, d, in.Reason)
		}
	})
	groups := []any{}
	for key, n := range sums {
		groups = append(groups, map[string]any{"handler": key[0], "class": key[1], "count": n})
	}
	done := map[string]any{"dry_run": in.DryRun, "matched": matched, "replayed": matched, "handlers": groups, "next": next}
	if in.DryRun {
		done["replayed"] = 0
	}
	answer(w, 200, done)
}

func (a *appliance) showAudit(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	end, next := min(from+limit, len(a.operated.audit)), any(nil)
	if end < len(a.operated.audit) {
		next = strconv.Itoa(end)
	}
	answer(w, 200, map[string]any{"entries": append([]map[string]any{}, a.operated.audit[from:end]...), "next": next, "freshness": immediate})
}

func (a *appliance) beginBackfill(w http.ResponseWriter, r *http.Request) {
	in := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	from, _ := in["from"].(string)
	to, _ := in["to"].(string)
	if from != "" && to != "" && from >= to {
		refuse(w, 422, "bad-span", "No message can have occurred in this span.", "Leave both out for all that is kept.", map[string]string{"path": "/to", "message": "must be later than from"})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(r.PathValue("name"))
	a.destinations[i]["hold"], a.destinations[i]["state"] = "backfill: held until its last slice is in", "paused"
	a.operated.backfill = map[string]any{"destination": r.PathValue("name"), "state": "running", "from": in["from"], "to": in["to"], "added": 1840, "progress": 0.42,
		"started_by": "token:laptop", "started_at": time.Now(), "finished_at": nil, "freshness": immediate}
	answer(w, 202, a.operated.backfill)
}
