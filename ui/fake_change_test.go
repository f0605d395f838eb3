package ui

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (a *appliance) find(name string) int {
	return slices.IndexFunc(a.destinations, func(d map[string]any) bool { return d["name"] == name })
}

func (a *appliance) showDestination(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(r.PathValue("name")); i >= 0 {
		answer(w, 200, a.destinations[i])
		return
	}
	refuse(w, 404, "no-destination", "There is no such destination.", "Look at the list for its name.")
}

func (a *appliance) createDestination(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]any
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	address, _ := wanted["url"].(string)
	switch {
	case a.find(wanted["name"].(string)) >= 0:
		refuse(w, 409, "destination-exists", "A destination of this name exists.", "", map[string]string{"path": "/name", "message": "is taken; choose another"})
	case wanted["kind"] == "webhook" && !strings.HasPrefix(address, "https://"):
		refuse(w, 422, "bad-url", "The URL cannot be delivered to.", "Give the whole address: https://shop.example/hooks",
			map[string]string{"path": "/url", "message": "must be an https or http address"})
	default:
		for name, value := range map[string]any{"state": "flowing", "order": "block", "created_at": time.Now(), "created_by": "token:laptop", "freshness": immediate} {
			wanted[name] = value
		}
		a.destinations = append(a.destinations, wanted)
		with := map[string]any{"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
		for name, value := range wanted {
			with[name] = value
		}
		answer(w, 201, with)
	}
}

func (a *appliance) deleteDestination(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(r.PathValue("name"))
	if i < 0 {
		refuse(w, 404, "no-destination", "There is no such destination.", "")
		return
	}
	a.destinations = slices.Delete(a.destinations, i, i+1)
	answer(w, 200, map[string]any{"name": r.PathValue("name"), "cancelled": 3})
}

func (a *appliance) turnDestination(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(r.PathValue("name"))
	if i < 0 {
		refuse(w, 404, "no-destination", "There is no such destination.", "")
		return
	}
	switch r.PathValue("verb") {
	case "pause":
		var why struct{ Reason string }
		_ = json.NewDecoder(r.Body).Decode(&why) // without a body there is no reason
		a.destinations[i]["state"], a.destinations[i]["hold"] = "paused", strings.TrimSuffix("paused by token:laptop: "+why.Reason, ": ")
	case "test":
		answer(w, 200, map[string]any{"destination": r.PathValue("name"), "delivered": false, "failure_class": "unreachable", "error": "connection refused", "duration_seconds": 0.002})
		return
	case "rotate-secret":
		var wanted struct{ Overlap string }
		if _ = json.NewDecoder(r.Body).Decode(&wanted); wanted.Overlap != "0h" {
			refuse(w, 409, "too-many-secrets", "8 secrets sign for shop already, and the next of the old ones ends at 2026-12-01T09:00:00Z.", "Wait for that, or end all of the old ones at once.")
			return
		}
		answer(w, 200, map[string]any{"name": r.PathValue("name"), "secret": "whsec_bmV3IHNlY3JldCBvZiB0aGUgc2hvcCwgMzIgYnl0ZXM="})
		return
	default:
		a.destinations[i]["state"] = "flowing"
		delete(a.destinations[i], "hold")
	}
	answer(w, 200, a.destinations[i])
}

func (a *appliance) alterDestination(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]any
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(r.PathValue("name"))
	if n, _ := wanted["concurrency"].(float64); n > 256 {
		refuse(w, 422, "invalid-destination", "A destination cannot be like this.", "", map[string]string{"path": "/concurrency", "message": "must be 1 to 256"})
		return
	}
	maps.Copy(a.destinations[i], wanted)
	answer(w, 200, a.destinations[i])
}

func (a *appliance) listDocuments(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := []map[string]any{}
	for key, d := range a.documents {
		if id, ok := strings.CutPrefix(key, r.PathValue("collection")+"/"); ok && d.body != "" {
			found = append(found, map[string]any{"collection": r.PathValue("collection"), "id": id, "version": d.version, "changed_at": d.changed, "body": json.RawMessage(d.body)})
		}
	}
	slices.SortFunc(found, func(x, y map[string]any) int { return strings.Compare(x["id"].(string), y["id"].(string)) })
	answer(w, 200, map[string]any{"documents": found, "next": nil, "freshness": immediate})
}

func (a *appliance) showDocument(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.documents[r.PathValue("collection")+"/"+r.PathValue("id")]
	if d == nil || d.body == "" {
		refuse(w, 404, "no-document", "There is no such document.", "")
		return
	}
	answer(w, 200, map[string]any{"collection": r.PathValue("collection"), "id": r.PathValue("id"), "version": d.version, "changed_at": d.changed,
		"body": json.RawMessage(d.body), "freshness": immediate})
}

func (a *appliance) changeDocuments(w http.ResponseWriter, r *http.Request) {
	var command struct {
		Changes []struct {
			Op, Collection, ID string
			Body               json.RawMessage
			IfVersion          *int `json:"if_version"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&command); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	versions := []map[string]any{}
	for _, c := range command.Changes {
		key := c.Collection + "/" + c.ID
		d := a.documents[key]
		if d == nil {
			d = &fakeDocument{}
		}
		have := d.version
		if d.body == "" {
			have = 0
		}
		if c.IfVersion != nil && *c.IfVersion != have {
			refuse(w, 409, "version-conflict", "The document has another version.", "Read it again, and decide again.",
				map[string]string{"path": "/changes/0/if_version", "message": "is not the document's version"})
			return
		}
		a.documents[key] = &fakeDocument{version: d.version + 1, body: string(c.Body), changed: time.Now()}
		versions = append(versions, map[string]any{"collection": c.Collection, "id": c.ID, "version": d.version + 1})
	}
	answer(w, 201, map[string]any{"documents": versions, "messages": []any{}})
}
