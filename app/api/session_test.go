package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/app/store"
)

func newSessionBed(t *testing.T) (*bed, *session.Sessions, *[]string) {
	t.Helper()
	var sessions *session.Sessions
	ended := &[]string{}
	b := newBed(t, nil, func(db *store.Store, d *api.Deps) {
		sessions = session.New(session.Config{Writer: db.Writer, Read: db.Read, Tokens: d.Tokens})
		sessions.OnEnd(func(id string) { *ended = append(*ended, id) })
		d.Sessions = sessions
	})
	return b, sessions, ended
}

// cookie signs in and returns the Cookie header.
func (b *bed) cookie(t *testing.T, body string) string {
	t.Helper()
	a := b.send(t, "", http.MethodPost, "/v1/session", body)
	if a.status != http.StatusCreated {
		t.Fatalf("sign in: %d %s", a.status, a.body)
	}
	set := a.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(set, want) {
			t.Errorf("cookie %q lacks %s", set, want)
		}
	}
	return strings.SplitN(set, ";", 2)[0]
}

func TestSetupLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	b, _, ended := newSessionBed(t)
	made := b.post(t, "/v1/session/links", "")
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(made.body), &link); err != nil || made.status != http.StatusCreated {
		t.Fatalf("%d %s", made.status, made.body)
	}
	_, secret, _ := strings.Cut(link.URL, "#token=")
	cookie := b.cookie(t, `{"setup":"`+secret+`"}`)
	if again := b.send(t, "", http.MethodPost, "/v1/session", `{"setup":"`+secret+`"}`); again.status != 401 || again.problem(t).Code != "bad-proof" {
		t.Errorf("second use: %d %s", again.status, again.body)
	}
	who := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", cookie)
	if who.status != http.StatusOK || !strings.Contains(who.body, `"role":"admin"`) {
		t.Errorf("who: %d %s", who.status, who.body)
	}
	if a := b.send(t, "", http.MethodGet, "/v1/messages", "", "Cookie", cookie); a.status != http.StatusOK {
		t.Errorf("a query with the cookie: %d", a.status)
	}
	if a := b.send(t, "", http.MethodDelete, "/v1/session", "", "Cookie", cookie); a.status != http.StatusNoContent {
		t.Fatalf("sign out: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", a.status)
	}
	if len(*ended) != 1 {
		t.Errorf("%d sessions were told to have ended", len(*ended))
	}
}

func TestSessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	b, _, _ := newSessionBed(t)
	cookie := b.cookie(t, `{"token":"`+b.tokens[access.Viewer]+`"}`)
	if a := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", cookie); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := b.send(t, b.tokens[access.Admin], http.MethodDelete, "/v1/tokens/the-viewer", ""); a.status != http.StatusOK {
		t.Fatalf("revoke: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("after the token was revoked: %d", a.status)
	}
}

// A session that a token opened ends when the token does, and so do the streams that it opens.
func TestSessionExpiresWithItsToken(t *testing.T) {
	t.Parallel()
	b, _, _ := newSessionBed(t)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	a := b.send(t, b.tokens[access.Admin], http.MethodPost, "/v1/tokens", `{"role":"viewer","expires_at":"`+end.Format(time.RFC3339Nano)+`"}`)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Token == "" {
		t.Fatalf("make a token: %d %s", a.status, a.body)
	}
	cookie := b.cookie(t, `{"token":"`+made.Token+`"}`)
	var says struct {
		ExpiresAt time.Time `json:"expires_at"`
	}
	a = b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", cookie)
	if err := json.Unmarshal([]byte(a.body), &says); err != nil || !says.ExpiresAt.Equal(end) {
		t.Errorf("the session ends at %s, its token at %s: %d %s", says.ExpiresAt, end, a.status, a.body)
	}
}

func TestLogOutElsewhere(t *testing.T) {
	t.Parallel()
	b, _, ended := newSessionBed(t)
	proof := `{"token":"` + b.tokens[access.Operator] + `"}`
	here, there := b.cookie(t, proof), b.cookie(t, proof)
	if a := b.send(t, "", http.MethodDelete, "/v1/session/others", "", "Cookie", here); a.status != http.StatusOK || a.body != "{\"ended\":1}\n" {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", there); a.status != http.StatusUnauthorized {
		t.Errorf("there: %d", a.status)
	}
	if a := b.send(t, "", http.MethodGet, "/v1/session", "", "Cookie", here); a.status != http.StatusOK || len(*ended) != 1 {
		t.Errorf("here: %d, ended %d", a.status, len(*ended))
	}
}

func TestSessionRefusals(t *testing.T) {
	t.Parallel()
	b, _, _ := newSessionBed(t)
	for name, c := range map[string]struct {
		body, code string
		status     int
	}{
		"nothing":     {`{}`, "invalid", 422},
		"both":        {`{"setup":"x","token":"y"}`, "invalid", 422},
		"wrong token": {`{"token":"ph_x"}`, "bad-proof", 401},
		"wrong link":  {`{"setup":"x"}`, "bad-proof", 401},
		"unknown":     {`{"user":"x"}`, "", 0},
	} {
		a := b.send(t, "", http.MethodPost, "/v1/session", c.body)
		if a.header.Get("Set-Cookie") != "" || a.status < 400 || c.status != 0 && (a.status != c.status || a.problem(t).Code != c.code) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := b.send(t, b.tokens[access.Operator], http.MethodPost, "/v1/session/links", ""); a.status != http.StatusForbidden {
		t.Errorf("an operator made a link: %d", a.status)
	}
	if a := b.send(t, "", http.MethodPost, "/v1/session", `{"token":"`+b.tokens[access.Admin]+`"}`, "Sec-Fetch-Site", "cross-site"); a.status != http.StatusForbidden {
		t.Errorf("another site's page signed in: %d", a.status)
	}
}
