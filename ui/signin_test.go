package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestSetupLink: a one-time link signs in, leaves nothing of itself in the address, and works once.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.signedIn = false
	b := newBrowser(t)
	tb := b.open(a, "/setup#token=one-time")
	tb.expect("401", "ERR_INCOMPLETE_CHUNKED_ENCODING")
	tb.shows("Happening now")
	tb.phase("live")
	if at := eval[string](tb, `location.pathname + location.hash`); at != "/" {
		t.Errorf("after signing in the address is %q", at)
	}
	tb.press("Sign out")
	tb.shows("API token")
	tb.shot("signin-light-desk")

	tb.goTo("/setup#token=one-time")
	tb.shows("This link was used already")
	tb.shows("sign in with an API token")
	tb.shot("signin-used-light-desk")
	if n := a.count("POST /v1/session"); n != 2 {
		t.Errorf("the link was tried %d times, want once for each visit", n)
	}
	tb.clean()
}

// TestSignInByToken: a wrong token is refused at its field, the right one leads to where one wanted to go.
func TestSignInByToken(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.signedIn = false
	tb := newBrowser(t).open(a, "/messages?state=dead-letter")
	tb.expect("401")
	tb.shows("API token")
	tb.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), "ph_wrong\r"))
	tb.shows("is not a valid API token")
	if eval[string](tb, `document.querySelector("input[type=password]").getAttribute("aria-invalid")`) != "true" {
		t.Error("the field that is wrong is not marked")
	}
	eval[any](tb, `document.querySelector("input[type=password]").select()`)
	tb.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), "ph_right\r"))
	tb.until(`document.querySelectorAll(".messages tbody tr").length > 0`, "the messages are there")
	if at := eval[string](tb, `location.pathname + location.search`); at != "/messages?state=dead-letter" {
		t.Errorf("after signing in the address is %q", at)
	}
	tb.clean()
}

// TestSignedOutElsewhere: when the session ends elsewhere, every tab leads to the log-in by itself, nothing is retried without end, and
// signing in again in one tab brings them all back.
func TestSignedOutElsewhere(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	b := newBrowser(t)
	one, two := b.open(a, "/"), b.open(a, "/messages")
	for _, tb := range []*tab{one, two} {
		tb.expect("401", "ERR_INCOMPLETE_CHUNKED_ENCODING")
		tb.phase("live")
	}
	a.set(func() { a.signedIn = false })
	a.stream.cut()
	for _, tb := range []*tab{one, two} {
		tb.shows("API token")
	}
	asked := func() int { return a.count("GET /v1/events") + a.count("GET /v1/session") + a.count("GET /v1/backlog") }
	before := asked()
	time.Sleep(3 * time.Second)
	if more := asked() - before; more > 3 {
		t.Errorf("%d requests in three seconds after signing out", more)
	}
	two.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), "ph_right\r"))
	for _, tb := range []*tab{one, two} {
		tb.phase("live")
		tb.clean()
	}
	one.shows("Happening now")
}

// TestAccessTakenAway: a stream that the server ends with a reason is asked for again at once. Whoever still has access, as after a change of role,
// goes on without the screen having counted as stale; whoever has none is led to the log-in, after one look at the session.
func TestAccessTakenAway(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.expect("401")
	tb.phase("live")
	eval[any](tb, `(window.phases = [], new MutationObserver(() => phases.push(document.querySelector(".live")?.dataset.phase)).observe(document.body, {subtree: true, attributes: true, childList: true}), 0)`)
	_, before, _ := a.stream.counts()
	a.stream.bye("forbidden")
	waitFor(t, "it came back", func() bool { open, accepted, _ := a.stream.counts(); return open == 1 && accepted == before+1 })
	tb.phase("live")
	a.pending(31)
	a.stream.notify("backlog", "", 900)
	tb.pendingShown("31")
	if eval[bool](tb, `phases.includes("stale") || phases.includes("signed out")`) {
		t.Errorf("the indicator went through %s", eval[string](tb, `phases.join(", ")`))
	}

	a.set(func() { a.signedIn = false })
	asked := func() int { return a.count("GET /v1/events") + a.count("GET /v1/session") }
	first := asked()
	a.stream.bye("signed-out")
	tb.shows("API token")
	time.Sleep(3 * time.Second)
	if more := asked() - first; more > 3 {
		t.Errorf("asked %d times after access was taken away", more)
	}
	tb.clean()
}

// TestSeveralTabs: tabs share one connection, and each hears what it shows; when the tab that holds it closes, another takes over from
// where it was.
func TestSeveralTabs(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	b := newBrowser(t)
	tabs := []*tab{b.open(a, "/")}
	tabs[0].phase("live")
	for i := range 6 {
		tabs = append(tabs, b.open(a, fmt.Sprintf("/messages/%s", a.messages[i].view["id"])))
	}
	for _, tb := range tabs {
		tb.phase("live")
	}
	last := tabs[6]
	id := a.messages[5].view["id"].(string)
	waitFor(t, "one connection carries every topic", func() bool {
		open, _, _ := a.stream.counts()
		return open == 1 && len(a.stream.topics()) > 6*40
	})
	change := func(kind string) {
		a.set(func() { a.messages[5].view["type"] = kind })
		a.stream.notify("messages/"+id, id, 0)
	}
	// Only the visible tab of a window reads again at once, so this one is brought to the front.
	last.front()
	change("changed-once")
	last.shows("changed-once")

	if err := chromedp.Cancel(tabs[0].ctx); err != nil {
		t.Fatalf("close the first tab: %v", err)
	}
	waitFor(t, "another tab holds the connection", func() bool { open, _, _ := a.stream.counts(); return open == 1 })
	last.front() // closing a tab may have brought another one to the front
	change("changed-twice")
	last.shows("changed-twice")
	last.phase("live")
	last.clean()
}
