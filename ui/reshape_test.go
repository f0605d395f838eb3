package ui

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDestinationIsReshaped: a destination is tried out, changed and given a new secret where it is looked at.
func TestDestinationIsReshaped(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.set(func() { a.role = "admin" })
	tb := newBrowser(t).open(a, "/destinations/shop")
	tb.expect("422")
	tb.expect("409")
	tb.press("Send a test")
	tb.shows("It did not take the test message (unreachable): connection refused")

	tb.accessible("a test that failed")
	tb.shot("destination-tested-light-desk")
	tb.do(chromedp.EmulateViewport(390, 844))
	tb.shot("destination-tested-light-phone")
	tb.press("Change …")
	tb.shot("change-light-phone")
	tb.do(chromedp.EmulateViewport(1440, 900))
	tb.accessible("the dialog of a change")
	tb.shot("change-light-desk")
	tb.write(tb.labelled("Concurrency"), "1000")
	tb.press("Change it")
	tb.shows("must be 1 to 256")
	tb.write(tb.labelled("Concurrency"), "7")
	tb.write(tb.labelled("Event types"), "order-*, parcel-sent")
	tb.press("Change it")
	tb.until(`!document.querySelector("dialog[open]") && [...document.querySelectorAll(".facts dd")].some((dd) => dd.innerText === "7")`, "the change is shown")
	tb.shows("parcel-sent")

	tb.press("New secret …")
	tb.press("Make a new secret")
	tb.shows("8 secrets sign for shop already")
	tb.shows("end all of the old ones at once")
	tb.accessible("a secret too many")
	tb.write(tb.labelled("Hours that the old one still signs"), "0")
	tb.shot("rotate-light-desk")
	tb.shows("What is delivered before the receiver knows the new secret will be refused by it.")
	tb.press("Make a new secret")
	tb.shows("whsec_bmV3IHNlY3JldCBvZiB0aGUgc2hvcCwgMzIgYnl0ZXM=")
	tb.press("I have kept the secret")
	tb.until(`!document.querySelector("dialog[open]")`, "the secret is gone")
	tb.clean()

	a.set(func() { a.role = "operator" })
	tb = newBrowser(t).open(a, "/destinations/shop")
	tb.shows("Send a test")
	if eval[bool](tb, `document.body.innerText.includes("New secret")`) {
		t.Error("an operator is offered what only an admin may do")
	}
}
