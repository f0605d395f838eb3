package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// appliance stands in for the API: it answers in its shapes from memory, and its stream does what a test says.
type appliance struct {
	server *httptest.Server
	stream *stream

	mu           sync.Mutex
	signedIn     bool
	role         string
	disconnected []string // who was, and why
	setups       map[string]bool
	messages     []*fakeMessage // the newest first
	payloads     map[string]fakePayload
	destinations []map[string]any
	documents    map[string]*fakeDocument
	lanes        []map[string]any
	alerts       []map[string]any
	total        map[string]any
	requests     map[string]int // by method and path
	idempotency  map[string]bool
	operated     operated
}

type fakeMessage struct {
	view  map[string]any
	state string
}

type fakePayload struct{ contentType, text string }

type fakeDocument struct {
	version int
	body    string
	changed time.Time
}

// newAppliance starts one with somebody signed in.
func newAppliance(t *testing.T) *appliance {
	t.Helper()
	a := &appliance{
		stream: newStream(), signedIn: true, role: "operator", setups: map[string]bool{"one-time": true}, payloads: map[string]fakePayload{},
		documents: map[string]*fakeDocument{}, requests: map[string]int{}, idempotency: map[string]bool{},
		total: map[string]any{"pending": 0, "held": 0, "processing": 0, "failed": 0, "attempts": 0, "dispatched": 0},
	}
	console, err := New()
	if err != nil {
		t.Fatalf("make console: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", console)
	mux.HandleFunc("GET /v1/session", a.showSession)
	mux.HandleFunc("POST /v1/session", a.openSession)
	mux.HandleFunc("DELETE /v1/session", a.closeSession)
	mux.HandleFunc("GET /v1/events", a.guard(a.stream.serve))
	mux.HandleFunc("GET /v1/lending/desk", a.guard(a.showDesk))
	mux.HandleFunc("GET /v1/lending/statistics", a.guard(a.showStatistics))
	mux.HandleFunc("GET /v1/connections", a.guard(a.listConnections))
	mux.HandleFunc("POST /v1/connections/disconnect", a.guard(a.disconnect))
	mux.HandleFunc("GET /v1/backlog", a.guard(a.showBacklog))
	mux.HandleFunc("GET /v1/alerts", a.guard(a.showAlerts))
	mux.HandleFunc("GET /v1/records", a.guard(a.listRecords))
	mux.HandleFunc("GET /v1/records/{kind}/{id}", a.guard(a.showRecord))
	mux.HandleFunc("GET /v1/settings", a.guard(a.listSettings))
	mux.HandleFunc("GET /v1/conformance", a.guard(a.listProvisions))
	mux.HandleFunc("GET /v1/messages", a.guard(a.listMessages))
	mux.HandleFunc("GET /v1/messages/{id}", a.guard(a.showMessage))
	mux.HandleFunc("GET /v1/messages/{id}/payload", a.guard(a.showPayload))
	mux.HandleFunc("GET /v1/destinations", a.guard(a.listDestinations))
	mux.HandleFunc("POST /v1/destinations", a.guard(a.createDestination))
	mux.HandleFunc("GET /v1/destinations/{name}", a.guard(a.showDestination))
	mux.HandleFunc("PATCH /v1/destinations/{name}", a.guard(a.alterDestination))
	mux.HandleFunc("DELETE /v1/destinations/{name}", a.guard(a.deleteDestination))
	mux.HandleFunc("POST /v1/destinations/{name}/{verb}", a.guard(a.turnDestination))
	mux.HandleFunc("GET /v1/documents/{collection}", a.guard(a.listDocuments))
	mux.HandleFunc("GET /v1/documents/{collection}/{id}", a.guard(a.showDocument))
	mux.HandleFunc("POST /v1/transactions", a.guard(a.changeDocuments))
	a.operateRoutes(mux)
	a.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		a.stream.stop()
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

func (a *appliance) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests[r.Method+" "+r.URL.Path]++
		in := a.signedIn
		a.mu.Unlock()
		if !in {
			refuse(w, 401, "unauthenticated", "You are not signed in.", "Sign in, or send an API token.")
			return
		}
		next(w, r)
	}
}

// count is how often something was asked.
func (a *appliance) count(request string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[request]
}

// set changes what the appliance holds.
func (a *appliance) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, code, detail, hint string, errors ...map[string]string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "status": status, "code": code, "title": http.StatusText(status),
		"detail": detail, "hint": hint, "errors": errors})
}

func (a *appliance) showSession(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests["GET /v1/session"]++
	if !a.signedIn {
		refuse(w, 401, "unauthenticated", "You are not signed in.", "")
		return
	}
	answer(w, 200, map[string]any{"actor": "token:laptop", "role": a.role, "tenant": "main", "modules": []string{"lending"}, "expires_at": time.Now().Add(time.Hour)})
}

func (a *appliance) openSession(w http.ResponseWriter, r *http.Request) {
	var proof struct{ Setup, Token string }
	if err := json.NewDecoder(r.Body).Decode(&proof); err != nil {
		refuse(w, 400, "malformed", "The body is not JSON.", "")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests["POST /v1/session"]++
	switch {
	case a.setups[proof.Setup]:
		delete(a.setups, proof.Setup)
	case proof.Token == "ph_right":
	case proof.Setup != "":
		refuse(w, 401, "setup-used", "This link was used already, or its time is over.", "Start Posthorn again for another, or sign in with an API token.")
		return
	default:
		refuse(w, 401, "bad-token", "This API token is not valid.", "Check that all of it was pasted.", map[string]string{"path": "/token", "message": "is not a valid API token"})
		return
	}
	a.signedIn = true
	answer(w, 201, map[string]any{"actor": "token:laptop", "role": a.role, "tenant": "main", "expires_at": time.Now().Add(time.Hour)})
}

func (a *appliance) closeSession(w http.ResponseWriter, _ *http.Request) {
	a.set(func() { a.signedIn = false })
	a.stream.cut()
	w.WriteHeader(http.StatusNoContent)
}

var immediate = map[string]string{"mode": "immediate"}

func (a *appliance) showBacklog(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer(w, 200, map[string]any{"at": time.Now(), "freshness": immediate, "total": a.total, "handlers": a.lanes})
}

func (a *appliance) listMessages(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	from, _ := strconv.Atoi(q.Get("cursor"))
	page, next := []any{}, any(nil)
	for i, m := range a.messages[min(from, len(a.messages)):] {
		text, _ := json.Marshal(m.view)
		fits := (q.Get("state") == "" || m.state == q.Get("state")) && (q.Get("type") == "" || m.view["type"] == q.Get("type")) &&
			strings.Contains(string(text), `"handler":"`+q.Get("handler")) && strings.Contains(string(text), q.Get("q"))
		if !fits {
			continue
		}
		if len(page) == limit {
			next = strconv.Itoa(from + i)
			break
		}
		page = append(page, m.view)
	}
	answer(w, 200, map[string]any{"messages": page, "next": next, "freshness": immediate})
}

func (a *appliance) showMessage(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.messages {
		if m.view["id"] == r.PathValue("id") {
			answer(w, 200, m.view)
			return
		}
	}
	refuse(w, 404, "no-message", "There is no such message.", "It may belong to another tenant, or have passed its retention.")
}

func (a *appliance) showPayload(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.payloads[r.PathValue("id")]
	if !ok {
		p = fakePayload{"application/json", `{"order":"1001","total":12345678901234567890,"rate":1.10,"note":"as given","lines":[{"sku":"B-7","n":2},{"sku":"K-12","n":1}],"gift":false}`}
	}
	w.Header().Set("Content-Type", p.contentType)
	fmt.Fprint(w, p.text)
}

func (a *appliance) listDestinations(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer(w, 200, map[string]any{"destinations": slices.Clone(a.destinations), "freshness": immediate})
}
