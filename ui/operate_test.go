package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// write writes into a field, replacing what is there.
func (tb *tab) write(selector, text string) {
	tb.t.Helper()
	eval[any](tb, `(document.querySelector(`+"`"+selector+"`"+`)?.select(), null)`)
	tb.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// labelled is the selector of the field with a label.
func (tb *tab) labelled(label string) string {
	tb.t.Helper()
	tb.until(`[...document.querySelectorAll("label")].some((l) => l.innerText.trim() === "`+label+`")`, "there is a field "+label)
	return "#" + eval[string](tb, `CSS.escape([...document.querySelectorAll("label")].find((l) => l.innerText.trim() === "`+label+`").htmlFor)`)
}

// TestFilters: filters live in the address, so they survive a reload and can be shared; "/" leads to the search.
func TestFilters(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/messages")
	tb.until(`document.querySelectorAll(".messages tbody tr").length === 50`, "a page of messages is there")
	eval[any](tb, `(document.activeElement.blur(), null)`)
	tb.do(chromedp.KeyEvent("/"))
	tb.until(`document.activeElement.id === "search"`, "the search has the focus")
	tb.write("#search", "4")
	// The list is read again while somebody types; what was typed stays.
	before := a.count("GET /v1/messages")
	a.stream.notify("backlog", "", 0)
	waitFor(t, "the list was read again", func() bool { return a.count("GET /v1/messages") > before })
	tb.do(chromedp.SendKeys(chromedp.CSS("#search"), "2"), chromedp.KeyEvent("2"))
	tb.until(`location.search === "?q=422"`, "the address holds the search")
	tb.do(chromedp.SetValue(chromedp.CSS("#filter-state"), "dead-letter"))
	eval[any](tb, `(document.querySelector("#filter-state").dispatchEvent(new Event("change", {bubbles: true})), null)`)
	tb.until(`location.search === "?q=422&state=dead-letter"`, "the address holds the state")
	tb.until(`document.querySelectorAll(".messages tbody tr").length === 14`, "only dead letters are shown")
	if eval[string](tb, `document.activeElement.id`) != "search" {
		t.Error("filtering took the focus away")
	}
	tb.do(chromedp.Reload())
	tb.until(`document.querySelectorAll(".messages tbody tr").length === 14`, "the filters are there after a reload")
	if got := eval[string](tb, `document.querySelector("#search").value + " " + document.querySelector("#filter-state").value`); got != "422 dead-letter" {
		t.Errorf("after a reload the fields say %q", got)
	}
	tb.press("Clear")
	tb.until(`location.search === "" && document.querySelectorAll(".messages tbody tr").length === 50`, "the filters are cleared")

	tb.press("Older")
	tb.until(`location.search.startsWith("?after=") && !document.body.innerText.includes("019ace800000")`, "older messages are shown")
	tb.press("Newer")
	tb.until(`location.search === "" && document.body.innerText.includes("019ace800000")`, "the newest are shown again")
	tb.clean()
}

// TestNavigation: a view has its title, its heading takes the focus, and going back works.
func TestNavigation(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.shows("Happening now")
	tb.press("Destinations")
	tb.until(`document.title === "Destinations · Posthorn" && document.activeElement.tagName === "H1"`, "the heading of the destinations has the focus")
	tb.press("Messages")
	tb.until(`document.querySelector(".messages a")`, "messages are there")
	tb.click(".messages .main-link")
	tb.until(`document.title.startsWith("Message 019ace8")`, "a message is shown")
	tb.do(chromedp.NavigateBack())
	tb.until(`document.title === "Messages · Posthorn"`, "the list is shown again")
	if n := eval[int](tb, `performance.getEntriesByType("navigation").length`); n != 1 {
		t.Errorf("%d loads of the page, want one", n)
	}
	tb.click(`[aria-label="dark theme"]`)
	tb.do(chromedp.Reload())
	tb.until(`getComputedStyle(document.body).colorScheme !== "" && getComputedStyle(document.documentElement).colorScheme === "dark"`, "the theme is remembered")
	tb.clean()
}

// TestDestinationLife: what is wrong is said at its field, the secret is shown once and cannot be lost by Esc, and a lane is held, let go and
// deleted, the last only after saying what that does.
func TestDestinationLife(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/destinations")
	tb.expect("422", "409")
	tb.press("New destination")
	tb.write(tb.labelled("Name"), "shop")
	tb.write(tb.labelled("URL"), "https://new.example/hooks")
	tb.press("Create")
	tb.shows("is taken; choose another")
	tb.write(tb.labelled("Name"), "warehouse")
	tb.write(tb.labelled("URL"), "new.example")
	tb.press("Create")
	tb.shows("must be an https or http address")
	tb.until(`document.querySelector("dialog [aria-invalid=true]").value === "new.example"`, "the field that is wrong is marked")
	tb.accessible("the dialog with an error")
	tb.shot("create-light-desk")
	tb.do(chromedp.EmulateViewport(390, 844))
	tb.shot("create-light-phone")
	tb.do(chromedp.EmulateViewport(1440, 900))
	tb.write(tb.labelled("URL"), "https://new.example/hooks")
	tb.press("Create")
	tb.shows("whsec_")
	tb.do(chromedp.KeyEvent("\x1b"))
	tb.shows("whsec_")
	tb.accessible("the secret")
	tb.shot("secret-light-desk")
	tb.press("I have kept the secret")
	tb.until(`document.title === "Destination warehouse · Posthorn"`, "the new destination is shown")
	if eval[bool](tb, `document.body.innerText.includes("whsec_")`) {
		t.Error("the secret is still shown")
	}

	tb.press("Pause …")
	tb.write(tb.labelled("Reason"), "month's end")
	tb.accessible("the question before a pause")
	tb.press("Hold its deliveries")
	tb.shows("paused by token:laptop: month's end")
	tb.press("Resume")
	tb.shows("Flowing")
	tb.press("Delete …")
	tb.until(`document.querySelector("dialog[open]")?.innerText.includes("dead letter")`, "the question says what it will do")
	tb.do(chromedp.KeyEvent("\x1b"))
	tb.until(`!document.querySelector("dialog")`, "Esc closes the question")
	tb.press("Delete …")
	tb.shot("delete-light-desk")
	tb.write(tb.labelled("Type warehouse to confirm"), "warehouse")
	tb.press("Delete the destination")
	tb.shows("warehouse is deleted. 3 pending deliveries were cancelled.")
	tb.until(`location.pathname === "/destinations" && document.querySelector(".destinations")?.innerText.includes("warehouse") === false`, "it is gone")
	tb.clean()
}

// TestDocument: JSON goes in and out as text, numbers beyond JavaScript's included; what somebody else wrote meanwhile is not overwritten unseen.
func TestDocument(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/documents/orders/1001")
	tb.expect("409", "404")
	tb.shows("12345678901234567890")
	tb.phase("live")
	tb.press("Edit")
	tb.write("textarea", `{"total": 98765432109876543210.10, "again": 1, "again": 2}`)
	tb.press("Write")
	tb.shows("Version 4")
	a.set(func() {
		if got := a.documents["orders/1001"].body; got != `{"total": 98765432109876543210.10, "again": 1, "again": 2}` {
			t.Errorf("stored %s", got)
		}
	})
	tb.shows("98765432109876543210.10")

	tb.press("Edit")
	tb.write("textarea", `{"total": }`)
	tb.press("Write")
	tb.shows("This is not JSON")
	a.set(func() { a.documents["orders/1001"] = &fakeDocument{9, `{"by":"somebody else"}`, time.Now()} })
	tb.shows("Somebody wrote version 9")
	tb.write("textarea", `{"by":"me"}`)
	tb.press("Write")
	tb.shows("The document has another version.")
	tb.accessible("the editor with a conflict")
	tb.shot("conflict-light-desk")
	tb.press("Keep mine")
	tb.press("Write")
	tb.shows("Version 10")

	tb.press("Delete …")
	tb.press("Delete the document")
	tb.shows("There is no such document")
	tb.clean()
}

// TestPayload: the payload is shown as it is stored, laid out or raw; bytes that are no text are shown as bytes.
func TestPayload(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	first, second := a.messages[0].view["id"].(string), a.messages[1].view["id"].(string)
	exact := `{ "n":12345678901234567890,"n":1.10, "e":1E400 ,"text":"<b>\u00e9\\"}`
	a.payloads[first] = fakePayload{"application/json", exact}
	a.payloads[second] = fakePayload{"application/octet-stream", "\x00\xff\xfe binary"}
	tb := newBrowser(t).open(a, "/messages/"+first)
	tb.until(`document.querySelector(".code")`, "the payload is there")
	if got := eval[string](tb, `document.querySelector(".code").textContent`); got != strings.Join([]string{
		`{`, `  "n": 12345678901234567890,`, `  "n": 1.10,`, `  "e": 1E400,`, `  "text": "<b>\u00e9\\"`, `}`}, "\n") {
		t.Errorf("laid out: %s", got)
	}
	tb.press("Raw")
	tb.until(`document.querySelector(".code").textContent === `+quoted(exact), "the raw payload is shown")
	tb.goTo("/messages/" + second)
	tb.shows("00 ff fe 20 62 69")
	tb.clean()
}

// TestEmpty: an appliance with nothing in it teaches how to begin.
func TestEmpty(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	tb := newBrowser(t).open(a, "/")
	for _, view := range []struct{ path, text string }{
		{"/", "A lane comes with each handler"}, {"/messages", "A message is staged in the transaction"}, {"/destinations", "No destination yet"},
		{"/documents", "Open a collection"}, {"/documents/orders", "is empty"},
	} {
		tb.goTo(view.path)
		tb.shows(view.text)
		if command := eval[string](tb, `document.querySelector(".shellcode pre").textContent`); !strings.HasPrefix(command, "curl "+a.server.URL+"/v1/") {
			t.Errorf("%s teaches %q", view.path, command)
		}
		tb.accessible("empty " + view.path)
		tb.shot("empty" + strings.ReplaceAll(view.path, "/", "-") + "-light-desk")
	}
	tb.clean()
}

// TestViewer: who may only read is shown nothing that would be refused.
func TestViewer(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.role = "viewer"
	tb := newBrowser(t).open(a, "/destinations")
	tb.shows("shop.example")
	for _, word := range []string{"New destination", "Pause shop", "Resume billing"} {
		if eval[bool](tb, `document.querySelector("main").textContent.includes(`+quoted(word)+`)`) {
			t.Errorf("a viewer is offered %q", word)
		}
	}
	tb.clean()
}
