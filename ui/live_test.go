package ui

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// cutNoise is what the browser itself says of a connection that breaks.
var cutNoise = []string{"ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "ERR_CONNECTION_REFUSED"}

// pending sets the figure that the overview shows, without telling anybody.
func (a *appliance) pending(n int) {
	a.set(func() { a.total["pending"] = n })
}

func (tb *tab) pendingShown(figure string) {
	tb.t.Helper()
	tb.until(`[...document.querySelectorAll(".figure")].find((f) => f.innerText.startsWith("Pending"))?.querySelector(".value").innerText.trim() === "`+figure+`"`,
		"the overview shows "+figure+" pending")
}

// TestNotified: what a notification tells of is read again and shown, without a reload.
func TestNotified(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.phase("live")
	a.pending(4321)
	a.stream.notify("backlog", "", 7)
	tb.pendingShown("4,321")
	waitFor(t, "the overview listens to what it shows, once", func() bool { return a.stream.topics() == "backlog" })
	tb.clean()
}

// TestStreamCut: while the stream is away the screen says since when it is stale; when it is back, what was missed is shown.
func TestStreamCut(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.expect(cutNoise...)
	tb.phase("live")
	a.stream.stop()
	tb.phase("stale")
	tb.shows("Stale since")
	tb.accessible("a stale screen")
	tb.shot("stale-light-desk")
	tb.do(chromedp.EmulateViewport(360, 800))
	if tb.over() > 0 {
		t.Error("the stale screen reaches over the edge of a phone")
	}
	tb.shot("stale-light-phone")
	time.Sleep(5 * time.Second) // long enough that several tries fail
	a.pending(99)
	a.stream.notify("backlog", "", 0)
	_, _, refused := a.stream.counts()
	if refused < 1 || refused > 30 {
		t.Errorf("%d tries while the stream was away, want some, with a growing wait between", refused)
	}
	a.stream.start()
	tb.phase("live")
	tb.pendingShown("99")
	a.stream.set(func() {
		if last := a.stream.cursors[len(a.stream.cursors)-1]; last == "" {
			t.Error("the reconnection did not say where it had been")
		}
	})
	tb.clean()
}

// TestRestarted: after a restart the history is another, so everything is read again, and versions begin anew.
func TestRestarted(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	tb.expect(cutNoise...)
	tb.phase("live")
	a.pending(10)
	a.stream.notify("backlog", "", 5000)
	tb.pendingShown("10")
	a.stream.stop()
	tb.phase("stale")
	a.pending(11)
	a.stream.restart()
	tb.phase("live")
	tb.pendingShown("11")
	a.pending(12)
	a.stream.notify("backlog", "", 1) // lower than any version of the old epoch
	tb.pendingShown("12")
	tb.clean()
}

// TestRepeatedAndReordered: repeats and what comes too late are not acted on, and the screen stays right.
func TestRepeatedAndReordered(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	id := a.messages[3].view["id"].(string)
	tb := newBrowser(t).open(a, "/messages/"+id)
	tb.phase("live")
	tb.shows("order-cancelled")
	read := func() int { return a.count("GET /v1/messages/" + id) }

	a.set(func() { a.messages[3].view["type"] = "the-newest" })
	a.stream.notify("messages/"+id, id, 20)
	tb.shows("the-newest")
	before := read()
	for _, version := range []int{20, 19, 7, 20, 1, 20} {
		a.stream.notify("messages/"+id, id, version)
	}
	// What follows on the same connection is acted on after what came before it.
	a.set(func() { a.messages[3].view["type"] = "newer-still" })
	a.stream.notify("messages/"+id, id, 21)
	tb.shows("newer-still")
	if more := read() - before; more != 1 {
		t.Errorf("six notifications that were old and one that was new led to %d reads", more)
	}
	// Malformed ones are a gap, never an error.
	a.set(func() { a.messages[3].view["type"] = "after-garbage" })
	a.stream.set(func() { a.stream.send("", "event: notification\ndata: {not json\n\n") })
	tb.shows("after-garbage")
	tb.clean()
}

// TestSilence: a connection on which not even a heartbeat comes is given up after twice its interval.
func TestSilence(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.stream.heartbeat = 400 * time.Millisecond
	tb := newBrowser(t).open(a, "/")
	tb.expect(cutNoise...)
	tb.phase("live")
	_, before, _ := a.stream.counts()
	a.stream.set(func() { a.stream.deaf = true })
	tb.phase("stale")
	a.pending(77)
	a.stream.set(func() { a.stream.deaf = false })
	tb.phase("live")
	tb.pendingShown("77")
	if _, after, _ := a.stream.counts(); after == before {
		t.Error("the dead connection was not replaced")
	}
	tb.clean()
}

// TestPause: while paused nothing moves, the screen says so, and resuming shows what was missed.
func TestPause(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/messages")
	tb.phase("live")
	tb.click(`[aria-label="Pause live updates"]`)
	tb.phase("paused")
	tb.shows("Nothing has changed since.")
	a.set(func() { a.messages[0].view["type"] = "while-paused" })
	a.stream.notify("backlog", "", 0)
	tb.shows("Something has changed since.")
	if eval[bool](tb, `document.body.innerText.includes("while-paused")`) {
		t.Error("a paused list moved")
	}
	tb.press("Resume")
	tb.shows("while-paused")
	tb.phase("live")
	tb.clean()
}

// TestRefused: a server that refuses a topic to somebody who is signed in is asked no more than twice; the view works without.
func TestRefused(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	a.stream.refusal = 403
	tb := newBrowser(t).open(a, "/")
	tb.expect("403")
	tb.phase("refused")
	tb.shows("Happening now")
	// Twice for the topics of the frame, and twice more if those of the view came after that.
	time.Sleep(3 * time.Second)
	if _, _, refused := a.stream.counts(); refused < 2 || refused > 4 {
		t.Errorf("asked %d times, want once and once more after checking the session", refused)
	}
	tb.clean()
}
