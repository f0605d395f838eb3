package horn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestLogOutElsewhere: ending a person's other sessions ends the streams of their browsers, which show the sign-in by themselves; the browser
// that did it goes on.
func TestLogOutElsewhere(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries)
	here, there, deep := p.enter(p.url, "/"), p.enter(p.url, "/"), p.enter(p.url, "/messages?state=dead-letter")
	for _, tb := range []*tab{there, deep} {
		tb.expect("401", "ERR_INCOMPLETE_CHUNKED_ENCODING")
		tb.mark()
	}
	here.mark()
	if ended := eval[int](here, `fetch("/v1/session/others", { method: "DELETE" }).then((a) => a.json()).then((told) => told.ended)`); ended != 2 {
		t.Errorf("%d sessions were ended, want 2", ended)
	}
	for _, tb := range []*tab{there, deep} {
		tb.shows("API token")
		tb.until(`document.title === "Sign in · Posthorn"`, "the sign-in is shown")
		tb.unloaded()
	}
	here.phase("live")
	p.must(http.StatusCreated, http.MethodPost, "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"1","body":{}}],"emits":[{"type":"order-placed","payload":{}}]}`)
	here.shows("order-placed")
	here.unloaded()
	here.clean()

	// Signing in again, by an API token this time, leads back to where one was, live.
	var made struct{ Token string }
	if err := json.Unmarshal(p.run("tokens", "create", "--role", "operator", "--json"), &made); err != nil {
		t.Fatal(err)
	}
	deep.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), made.Token+"\r"))
	deep.phase("live")
	if at := eval[string](deep, `location.pathname + location.search`); at != "/messages?state=dead-letter" {
		t.Errorf("after signing in again the address is %q", at)
	}
	deep.clean()
	there.clean()
}

// TestTokenRevoked: a session that an API token opened ends with it.
func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries)
	var made struct{ ID, Token string }
	if err := json.Unmarshal(p.run("tokens", "create", "--name", "kiosk", "--role", "viewer", "--json"), &made); err != nil {
		t.Fatal(err)
	}
	tb := open(t, p.url+"/messages")
	tb.expect("401", "ERR_INCOMPLETE_CHUNKED_ENCODING")
	tb.shows("API token")
	tb.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), made.Token+"\r"))
	tb.phase("live")
	p.run("tokens", "revoke", "kiosk")
	tb.until(`document.title === "Sign in · Posthorn"`, "the sign-in is shown")
	tb.clean()
}

// TestLink: a one-time link works once, leaves nothing of itself in the address or the history, and dies with the process.
func TestLink(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries)
	link := p.link()
	if !strings.HasPrefix(link, p.url+"/setup#token=") {
		t.Fatalf("the link is %q", link)
	}
	one, two := open(t, link), open(t, p.url+"/messages")
	one.until(`location.href === location.origin + "/" && document.title === "Overview · Posthorn"`, "the link has signed in")
	one.phase("live")
	one.clean()
	two.expect("401")
	two.goTo(strings.TrimPrefix(link, p.url))
	two.shows("API token")
	two.until(`document.querySelector(".problem")`, "the sign-in says why the link did not work")
	if at := eval[string](two, `location.href`); strings.Contains(at, "token") {
		t.Errorf("a link that was used stays in the address: %s", at)
	}
	two.clean()
	// Signing out here ends it here.
	one.expect("ERR_INCOMPLETE_CHUNKED_ENCODING", "401")
	eval[bool](one, `(document.querySelector(".who button").click(), true)`)
	one.until(`document.title === "Sign in · Posthorn"`, "the sign-in is shown")
	one.goTo("/destinations")
	one.until(`document.title === "Sign in · Posthorn"`, "the session is over")
	one.clean()
}
