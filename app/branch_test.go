package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/inbound"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// ask sends a request to the API as the machine's own user, or, without one, as anybody.
func (a *Appliance) ask(t *testing.T, known bool, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if known {
		r = r.WithContext(access.With(r.Context(), access.LocalPrincipal()))
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestAnEventFromOutsideReachesTheBranch goes through POST /v1/inbound/{source}: no token, but a signature.
func TestAnEventFromOutsideReachesTheBranch(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	options := testOptions(t, t.TempDir())
	options.Config.Lending = true
	options.Config.Inbound = map[string]inbound.Source{"accounts": {Secret: secret}, "catalogue": {Secret: secret, Types: []string{"work-*"}}}
	a := open(t, options)
	if status, text := a.ask(t, true, http.MethodPost, "/v1/lending/members", `{"id":"M-1","name":"Ada","email":"ada@example.org"}`); status != http.StatusCreated {
		t.Fatalf("register: %d %s", status, text)
	}
	a.ask(t, true, http.MethodPost, "/v1/lending/copies", `{"id":"C-1","work":"moby-dick","title":"Moby-Dick"}`)
	good := `{"type":"member-suspended","timestamp":"2026-11-29T12:00:00Z","data":{"member":"M-1","reason":"fees","at":"2026-11-29T12:00:00Z"}}`
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	send := func(source, id, body string) (int, string) {
		now := time.Now()
		signature, err := signer.Sign(id, now, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return a.ask(t, false, http.MethodPost, "/v1/inbound/"+source, body,
			"webhook-id", id, "webhook-timestamp", strconv.FormatInt(now.Unix(), 10), "webhook-signature", signature)
	}
	for _, c := range []struct {
		name   string
		send   func() (int, string)
		status int
		want   string
	}{
		{"no signature", func() (int, string) {
			return a.ask(t, false, http.MethodPost, "/v1/inbound/accounts", good)
		}, 401, `"code":"unverified"`},
		{"unknown source", func() (int, string) { return send("nobody", "e-1", good) }, 401, `"code":"unverified"`},
		{"a type that the source may not send", func() (int, string) { return send("catalogue", "e-1", good) }, 403, `"code":"forbidden"`},
		{"no JSON", func() (int, string) { return send("accounts", "e-1", `{"type":`) }, 400, `"code":`},
		{"an unknown field", func() (int, string) {
			return send("accounts", "e-1", `{"type":"member-suspended","extra":1,"data":{}}`)
		}, 422, `"code":`},
		{"data that breaks its schema", func() (int, string) {
			return send("accounts", "e-1", `{"type":"member-suspended","data":{"member":"M-1"}}`)
		}, 422, `"code":"invalid-payload"`},
		{"a good one", func() (int, string) { return send("accounts", "e-1", good) }, 200, `"outcome":"applied"`},
		{"it again", func() (int, string) { return send("accounts", "e-1", good) }, 200, `"outcome":"suppressed"`},
		{"what it forbids", func() (int, string) {
			return a.ask(t, true, http.MethodPost, "/v1/lending/loans", `{"member":"M-1","copy":"C-1"}`)
		}, 409, `"code":"member-suspended"`},
		{"who may read", func() (int, string) { return a.ask(t, false, http.MethodGet, "/v1/lending/members", "") }, 401, `"code":"unauthenticated"`},
		{"what is on", func() (int, string) { return a.ask(t, true, http.MethodGet, "/v1/session", "") }, 200, `"modules":["lending"]`},
	} {
		if status, text := c.send(); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, text, c.status, c.want)
		}
	}
}

// TestTheBranchIsOffUnlessAsked: its routes are not there, and nothing can be staged for it.
func TestTheBranchIsOffUnlessAsked(t *testing.T) {
	t.Parallel()
	a := open(t, testOptions(t, t.TempDir()))
	if status, _ := a.ask(t, true, http.MethodGet, "/v1/lending/desk", ""); status != http.StatusNotFound {
		t.Errorf("the desk: %d", status)
	}
	status, text := a.ask(t, true, http.MethodGet, "/v1/session", "")
	var who struct{ Modules []string }
	if err := json.Unmarshal([]byte(text), &who); err != nil || status != http.StatusOK || len(who.Modules) != 0 {
		t.Errorf("session: %d %s", status, text)
	}
}

// TestAUseCaseThatDisagreesWithItsRecordStopsTheStart changes a record so that it no longer declares what its use case emits.
func TestAUseCaseThatDisagreesWithItsRecordStopsTheStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "records", "use-cases", "borrow-a-copy.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\ntitle: Borrow\nactor: a clerk\nrequest: command\nchanges: the loan\n---\nIt emits nothing.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), testOptions(t, folder)); err == nil || !strings.Contains(err.Error(), "use-cases/borrow-a-copy") {
		t.Errorf("start: %v", err)
	}
}
