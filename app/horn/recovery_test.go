package horn_test

import (
	"net/http"
	"testing"
	"time"
)

// brokenLine is what the browser itself says of connections that break.
var brokenLine = []string{"ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "ERR_CONNECTION_REFUSED", "ERR_SOCKET_NOT_CONNECTED"}

// TestStreamCut: the line is cut for five seconds, in which things happen; when it is back, so is the screen.
func TestStreamCut(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	p.order(1, "order-placed")
	between := newLine(t, p.url)
	tb, overview := p.enter(between.url, "/messages"), p.enter(between.url, "/")
	for _, each := range []*tab{tb, overview} {
		each.expect(brokenLine...)
		each.mark()
	}
	tb.lists(p, "", 1)

	between.sever()
	for _, each := range []*tab{tb, overview} {
		each.phase("stale")
		each.shows("Stale since")
	}
	for number := 2; number <= 6; number++ {
		p.order(number, "order-placed")
	}
	receiver.answer(http.StatusBadRequest)
	p.order(7, "order-cancelled")
	time.Sleep(5 * time.Second) // long enough that tries fail and the wait between them grows
	if shown := tb.listedNow(); len(shown) != 1 {
		t.Errorf("%d messages are shown over a line that is cut", len(shown))
	}
	between.mend()
	tb.lists(p, "", 7)
	overview.figures(p)
	for _, each := range []*tab{tb, overview} {
		each.phase("live")
	}
	// And it is live, not only read again.
	p.order(8, "order-placed")
	tb.lists(p, "", 8)
	for _, each := range []*tab{tb, overview} {
		each.unloaded()
		each.clean()
	}
}

// TestFrozenLine: a line on which nothing comes any more, and which nobody has ended, is given up for another by itself.
func TestFrozenLine(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries+`  live-heartbeat: {value: 500ms, observation: "a test cannot wait for half a minute"}
`)
	p.destination("shop", receiver.URL, "*")
	between := newLine(t, p.url)
	tb := p.enter(between.url, "/messages")
	tb.expect(brokenLine...)
	tb.mark()
	between.freeze()
	p.order(1, "order-placed")
	tb.phase("stale")
	between.thaw()
	tb.lists(p, "", 1)
	tb.phase("live")
	tb.unloaded()
	tb.clean()
}

// TestServerKilled: the process dies in the middle of a delivery and comes back on its port. Nobody reloads, nobody signs in again, and the
// screens are right.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	p.order(1, "order-placed")
	list, overview, document := p.enter(p.url, "/messages"), p.enter(p.url, "/"), p.enter(p.url, "/documents/orders/1")
	all := []*tab{list, overview, document}
	for _, tb := range all {
		tb.expect(brokenLine...)
		tb.mark()
	}
	list.lists(p, "", 1)
	document.document(p, "orders", "1", 1)

	for round := range 2 {
		release := receiver.wait()
		id := p.order(10+round, "order-placed")
		list.until(`[...document.querySelectorAll(".messages tbody tr")].some((row) => row.innerText.includes("`+id+`") && row.querySelector(".state").dataset.state === "processing")`,
			"the delivery is under way")
		p.kill()
		for _, tb := range all {
			tb.phase("stale")
		}
		release()
		p.start()
		p.order(1, "order-cancelled")
		list.lists(p, "", 3+2*round)
		overview.figures(p)
		document.document(p, "orders", "1", 2+round)
		for _, tb := range all {
			tb.phase("live")
			tb.unloaded()
		}
	}
	for _, tb := range all {
		tb.clean()
	}
}
