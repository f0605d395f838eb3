package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestDeliveryActions: each state offers what it allows and nothing else; a question says what it will do and asks why; what was done is told
// and stands in the timeline; what is refused is said where it belongs.
func TestDeliveryActions(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	address := func(i int) string { return "/messages/" + a.messages[i].view["id"].(string) }
	tb := newBrowser(t).open(a, address(4))
	tb.expect("422", "409")
	tb.shows("Dead letter: rejected")
	offered := `[...document.querySelectorAll(".delivery-actions button")].map((e) => e.firstChild.textContent).join(" ")`
	if got := eval[string](tb, offered); got != "Replay … Skip … Send again …" {
		t.Errorf("offered for a dispatched and a dead delivery: %s", got)
	}
	tb.shows("holds back the later messages")

	tb.press("Replay …")
	tb.shows("keeps its id and its bytes")
	tb.accessible("the question before a replay")
	tb.shot("replay-light-desk")
	tb.do(chromedp.SendKeys(chromedp.CSS("dialog[open] input"), "\r"))
	tb.shows("Say why.")
	tb.write(tb.labelled("Reason"), "forbidden\r")
	tb.shows("must be 1 to 500 characters on one line")
	tb.until(`document.querySelector("dialog[open] input").getAttribute("aria-invalid") === "true"`, "the field that is wrong is marked")
	tb.write(tb.labelled("Reason"), "the receiver was mended\r")
	tb.shows("Replayed: it is pending again.")
	tb.shows("Replayed by token:laptop")
	tb.shows("in answer to rejected: target answered 422 Unprocessable Entity")
	if got := eval[string](tb, offered); got != "Cancel … Send again …" {
		t.Errorf("offered after the replay: %s", got)
	}
	tb.shot("replayed-light-desk")

	// An attempt began meanwhile: the refusal says so, and nothing is claimed to have been done.
	tb.press("Cancel …")
	tb.shows("No further attempt is made")
	a.set(func() { a.messages[4].view["deliveries"].([]any)[1].(map[string]any)["state"] = "processing" })
	tb.write(tb.labelled("Reason"), "sent by mistake\r")
	tb.shows("An attempt runs")
	tb.accessible("a refused cancel")
	tb.do(chromedp.KeyEvent("\x1b"))
	tb.shows("under way")
	if got := eval[string](tb, offered); got != "Send again …" {
		t.Errorf("offered while an attempt runs: %s", got)
	}
	a.set(func() { a.messages[4].view["deliveries"].([]any)[1].(map[string]any)["state"] = "pending" })
	a.stream.notify("messages/"+a.messages[4].view["id"].(string), a.messages[4].view["id"].(string), 0)
	tb.press("Cancel …")
	tb.write(tb.labelled("Reason"), "sent by mistake\r")
	tb.shows("cancelled by token:laptop: sent by mistake")

	tb.press("Send again …")
	tb.shows("outside the order")
	tb.write(tb.labelled("Reason"), "the receiver lost it\r")
	tb.shows("Sent again: delivery 9001 is pending.")
	tb.shows("dispatched, suppressed")
	tb.shows("Sends delivery 9 again")
	tb.accessible("a message that was sent again")
	tb.do(chromedp.EmulateViewport(390, 844))
	tb.shot("resent-light-phone")
	if over := tb.over(); over > 0 {
		t.Errorf("the message reaches %d px over the edge", over)
	}
	tb.clean()
}

// TestWaitingDeliveries: why a delivery does not go out is told: its lane is held, or its key waits.
func TestWaitingDeliveries(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	second := func(i int) map[string]any { return a.messages[i].view["deliveries"].([]any)[1].(map[string]any) }
	second(1)["blocked"] = true
	second(7)["held"] = true
	tb := newBrowser(t).open(a, "/messages/"+a.messages[1].view["id"].(string))
	tb.shows("Waits for an earlier message of its ordering key")
	tb.shows("The order of orders/1001 is kept")
	tb.goTo("/messages/" + a.messages[7].view["id"].(string))
	tb.shows("Held until its lane flows")
	tb.accessible("a held delivery")
	a.set(func() {
		second(7)["held"] = false
		a.lanes[2]["breaker"] = map[string]any{"state": "probing", "since": time.Now().Add(-3 * time.Hour)}
	})
	tb.do(chromedp.Reload())
	tb.shows("Waits until its target can be reached")
	tb.shows("one probe is out")
	tb.accessible("a delivery behind an open breaker")
	tb.goTo("/messages/" + a.messages[0].view["id"].(string))
	tb.shows("held by token:till until")
	tb.accessible("a delivery that a consumer holds")
	tb.goTo("/messages/" + a.messages[7].view["id"].(string))
	tb.shows("Waits until its target can be reached")
	tb.shot("waiting-light-desk")
	tb.clean()
}

// TestViewerOperatesNothing: who may only read is offered no action, and asks for nothing that would be refused.
func TestViewerOperatesNothing(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.role = "viewer"
	tb := newBrowser(t).open(a, "/messages/"+a.messages[4].view["id"].(string))
	tb.shows("Dead letter: rejected")
	if n := eval[int](tb, `document.querySelectorAll(".delivery-actions").length`); n > 0 {
		t.Errorf("a viewer is offered %d actions", n)
	}
	tb.goTo("/dead-letters")
	tb.shows("The figures are of these")
	tb.until(`![...document.querySelectorAll("main button")].some((e) => e.innerText.includes("Replay"))`, "no replay is offered")
	tb.accessible("dead letters for a viewer")
	tb.goTo("/audit")
	tb.shows("needs an operator")
	if n := a.count("POST /v1/replays") + a.count("GET /v1/audit"); n > 0 {
		t.Errorf("%d requests that a viewer is refused", n)
	}
	tb.clean()
}

// TestLane: a breaker that is open is told with when the next probe goes out, what is held with its size, and a backfill with its progress.
func TestLane(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.lanes[2]["breaker"] = map[string]any{"state": "open", "since": time.Now().Add(-3 * time.Hour), "next_probe": time.Now().Add(50 * time.Second)}
	a.lanes[2]["width"] = 2
	tb := newBrowser(t).open(a, "/destinations")
	tb.expect("422")
	tb.shows("Unreachable")
	tb.shot("breaker-list-light-desk")
	tb.goTo("/destinations/shop")
	tb.shows("next probe in")
	tb.shows("at most 50 attempts/s")
	tb.shows("2 may be used now")
	tb.accessible("a lane with an open breaker")
	tb.shot("breaker-light-desk")
	tb.press("Probe now")
	waitFor(t, "the lane is asked to go on", func() bool { return a.count("POST /v1/destinations/shop/resume") == 1 })
	tb.goTo("/destinations/billing")
	tb.shows("177.7 KiB of payload")

	tb.press("Backfill …")
	tb.shows("is not counted beforehand")
	set := func(label, value string) {
		eval[any](tb, `((e) => { e.value = "`+value+`"; e.dispatchEvent(new Event("change", {bubbles: true})); return null; })(document.querySelector("`+tb.labelled(label)+`"))`)
	}
	set("Occurred from", "2026-11-02T00:00:00")
	set("Occurred before", "2026-11-01T00:00:00")
	tb.press("Begin the backfill")
	tb.shows("must be later than from")
	tb.accessible("a backfill of no span")
	tb.shot("backfill-light-desk")
	set("Occurred before", "2026-11-03T00:00:00")
	tb.press("Begin the backfill")
	tb.shows("1,840 deliveries added of messages from 2026-11-02 00:00:00 UTC, before 2026-11-03 00:00:00 UTC")
	tb.accessible("a backfill under way")
	if eval[bool](tb, `[...document.querySelectorAll("main button")].some((e) => /Resume|Backfill/.test(e.innerText))`) {
		t.Error("a backfill that is under way can be resumed or begun again")
	}
	tb.shot("backfilling-light-desk")
	a.set(func() {
		a.operated.backfill["state"], a.operated.backfill["added"], a.operated.backfill["finished_at"] = "finished", 2001, time.Now()
		a.destinations[1]["state"] = "flowing"
		delete(a.destinations[1], "hold")
	})
	tb.shows("2,001 deliveries")
	tb.shows("Flowing")
	tb.clean()
}

// TestAccess: the audit goes back page by page, and one is signed out everywhere else after being told what that does.
func TestAccess(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.shows("Happening now")
	tb.press("token:laptop")
	tb.shows("Ends by itself")
	tb.press("Sign out everywhere else …")
	tb.shows("This one stays.")
	tb.accessible("the question before signing out elsewhere")
	if a.count("DELETE /v1/session/others") > 0 {
		t.Error("it was done without asking")
	}
	tb.click("dialog .danger")
	tb.shows("2 other sessions were ended.")
	tb.press("Read the audit")
	tb.shows("in answer to failed: target answered 503")
	if n := eval[int](tb, `document.querySelectorAll(".audit tbody tr").length`); n != 50 {
		t.Errorf("%d entries in a page", n)
	}
	tb.press("Older")
	tb.until(`document.querySelectorAll(".audit tbody tr").length === 22 && location.search.startsWith("?after=")`, "older entries are shown")
	tb.press("Newer")
	tb.until(`document.querySelectorAll(".audit tbody tr").length === 50 && location.search === ""`, "the newest are shown again")
	if eval[string](tb, `document.querySelector(".audit .id").getAttribute("href")`) != "/messages/"+a.messages[4].view["id"].(string) {
		t.Error("an entry does not lead to its message")
	}
	tb.clean()
}

// TestConnections: an administrator sees who listens and how far behind, and closes a user's streams with a reason; others are not shown any of it.
func TestConnections(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	b := newBrowser(t)
	tb := b.open(a, "/access")
	tb.shows("Ends by itself")
	if a.count("GET /v1/connections") > 0 {
		t.Error("an operator's console asks who listens")
	}
	a.set(func() { a.role = "admin" })
	tb.goTo("/access")
	tb.shows("90,210")
	tb.shows("7.2 s")
	tb.shows("and 1 more")
	tb.shows("life span 3")
	tb.accessible("live connections")
	tb.shot("access-admin-light-desk")
	tb.do(chromedp.EmulateViewport(390, 900))
	if tb.over() > 0 {
		t.Error("the connections reach over the edge of a phone")
	}
	tb.shot("access-admin-light-phone")
	tb.click(`[aria-label="Disconnect main/token:kiosk"]`)
	tb.shows("comes back by themselves")
	tb.write("dialog input", "the shop closes")
	tb.click("dialog .danger")
	tb.shows("1 stream was closed.")
	a.set(func() {
		if len(a.disconnected) != 1 || a.disconnected[0] != "main/token:kiosk: the shop closes" {
			t.Errorf("disconnected %q", a.disconnected)
		}
	})
	tb.clean()
}

// TestBulkReplay: the bulk replay sends exactly the filter of the view, says how many that meets before anything is done, and goes on where it was cut short.
func TestBulkReplay(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	dead := 0
	a.dead(func(_ *fakeMessage, d map[string]any) {
		if dead++; dead > 11 {
			d["failure_class"], d["last_error"] = "failed", "target answered 503 Service Unavailable"
		}
	})
	tb := newBrowser(t).open(a, "/dead-letters?class=failed")
	tb.expect("503")
	tb.shows("3 dead letters fit")
	tb.accessible("dead letters of a class")
	tb.goTo("/dead-letters")
	tb.shows("14 dead letters fit")
	tb.until(`document.querySelectorAll(".letters").length === 2`, "there are two groups")
	if got := eval[string](tb, `[...document.querySelectorAll(".letters h2")].map((e) => e.innerText).join()`); got != "shop rejected,shop failed" {
		t.Errorf("the groups are %s", got)
	}
	tb.press("Only this error")
	tb.until(`new URLSearchParams(location.search).get("q") === "target answered 422 Unprocessable Entity"`, "the error is searched for")
	tb.shows("11 dead letters fit")
	tb.press("Clear")
	tb.shows("14 dead letters fit")
	tb.do(chromedp.EmulateViewport(390, 844))
	tb.shot("dead-letters-two-light-phone")
	tb.do(chromedp.EmulateViewport(1440, 900))

	tb.press("Replay …") // of the first group, which narrows the view to it
	tb.until(`location.search === "?handler=shop&class=rejected"`, "the view shows the group only")
	tb.shows("11 dead letters of shop, class rejected")
	tb.accessible("the question before a bulk replay")
	tb.shot("bulk-light-desk")
	tb.do(chromedp.SendKeys(chromedp.CSS("dialog[open] input"), "\r"))
	tb.shows("Say why.")
	a.set(func() { a.operated.slice, a.operated.failNext = 4, true })
	tb.write(tb.labelled("Reason"), "the receiver was mended\r")
	tb.shows("The store does not answer.")
	tb.shows("4 of 11 replayed")
	tb.accessible("a bulk replay that broke off")
	tb.shot("bulk-broken-light-desk")
	tb.press("Go on")
	tb.shows("11 of 11 replayed.")
	tb.press("Done")
	tb.shows("No dead letter fits")
	tb.press("Clear the filters")
	tb.shows("3 dead letters fit")
	a.set(func() {
		for _, filter := range a.operated.filters {
			if len(filter) != 2 || filter["handler"] != "shop" || filter["class"] != "rejected" {
				t.Errorf("the bulk replay sent the filter %v", filter)
			}
		}
		if len(a.operated.filters) != 3 {
			t.Errorf("%d parts, want 3", len(a.operated.filters))
		}
	})
	// Others die meanwhile: the figure says that it is old.
	a.set(func() { a.total["failed"] = 9 })
	a.stream.notify("backlog", "", 0)
	tb.shows("has changed since they were counted")
	if strings.Contains(tb.text(), "At least") {
		t.Error("a whole count is called a part")
	}
	tb.clean()
}
