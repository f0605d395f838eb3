package horn_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// tabTo presses the tabulator key until what has the focus begins with a text, as somebody without a mouse does.
func (tb *tab) tabTo(text string) {
	tb.t.Helper()
	var passed []string
	for range 120 {
		tb.do(chromedp.KeyEvent("\t"))
		at := eval[string](tb, `(document.activeElement?.getAttribute("aria-label") || document.activeElement?.innerText || document.activeElement?.tagName || "").trim()`)
		if strings.HasPrefix(at, text) {
			return
		}
		passed = append(passed, at)
	}
	tb.t.Fatalf("no way by the keyboard to %q; passed %q", text, passed)
}

// TestByKeyboard: the whole task of mending a dead letter is done without a mouse: find it, look at it, replay it with a reason, see it delivered.
func TestByKeyboard(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	receiver.answer(http.StatusUnprocessableEntity)
	id := p.order(1, "order-placed")
	tb := p.enter(p.url, "/")
	tb.until(`document.querySelector(".nav .badge")?.innerText === "1"`, "the navigation counts the dead letter")
	tb.mark()
	tb.tabTo("Dead letters")
	tb.do(chromedp.KeyEvent("\r"))
	tb.until(`document.title === "Dead letters · Posthorn" && document.activeElement.tagName === "H1"`, "the view is there, and has the focus")
	tb.shows("422 Unprocessable")
	tb.tabTo("order-placed")
	tb.do(chromedp.KeyEvent("\r"))
	tb.state("dead-letter")
	tb.tabTo("Replay")
	tb.do(chromedp.KeyEvent("\r"))
	tb.until(`document.activeElement?.closest("dialog[open]") && document.activeElement.tagName === "INPUT"`, "the dialog has the focus, in its field")
	tb.do(chromedp.KeyEvent("the shop was mended\r"))
	tb.state("dispatched")
	tb.shows("the shop was mended")
	if at := eval[string](tb, `location.pathname`); at != "/messages/"+id {
		t.Errorf("the task ended at %s", at)
	}
	tb.until(`!document.querySelector(".nav .badge")`, "the navigation counts none")
	tb.unloaded()
	tb.clean()
}

// TestUnreachableTarget: a target that nothing listens at opens its breaker. The screens say so, with what waits for it; nothing is given up, and when it
// is there again everything arrives without anybody having done anything.
func TestUnreachableTarget(t *testing.T) {
	t.Parallel()
	p := newProgram(t, `
egress:
  allow: ["127.0.0.0/8"]
settings:
  retry-first: {value: 200ms, observation: "a test cannot wait for seconds"}
  breaker-opens-after: {value: 2, observation: "a test cannot wait for five"}
  breaker-probe-first: {value: 500ms, observation: "a test cannot wait for long"}
  breaker-probe-cap: {value: 1s, observation: "a test cannot wait for long"}
`)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p.destination("shop", "http://"+address+"/", "*")
	const orders = 7
	for i := range orders {
		p.order(i, "order-placed")
	}
	overview, destination := p.enter(p.url, "/"), p.enter(p.url, "/destinations/shop")
	for _, tb := range []*tab{overview, destination} {
		tb.mark()
		tb.shows("Unreachable")
		tb.until(fmt.Sprintf(`document.body.innerText.match(/Pending\s+%d\b/)`, orders), "everything waits")
	}
	destination.shows("Probe now")

	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	shop := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}}
	shop.Start()
	t.Cleanup(shop.Close)
	overview.shows("Flowing")
	for _, tb := range []*tab{overview, destination} {
		tb.until(`document.body.innerText.match(/Pending\s+0\b/) && !document.body.innerText.includes("Unreachable")`, "nothing waits any more")
		if eval[bool](tb, `document.querySelector(".nav .badge") !== null`) {
			t.Error("something was given up")
		}
		tb.unloaded()
		tb.clean()
	}
}

// TestPausedElsewhere: what one operator pauses and resumes, with their reason, another sees on a screen that nobody touches, and what is held too.
func TestPausedElsewhere(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	here, there, overview := p.enter(p.url, "/destinations/shop"), p.enter(p.url, "/destinations/shop"), p.enter(p.url, "/")
	for _, tb := range []*tab{here, there, overview} {
		tb.shows("Flowing")
		tb.mark()
	}
	here.tabTo("Pause …")
	here.do(chromedp.KeyEvent("\r"))
	here.until(`document.activeElement?.closest("dialog[open]")`, "the dialog is there")
	here.do(chromedp.KeyEvent("month's end\r"))
	for _, tb := range []*tab{here, there} {
		tb.shows("Paused")
		tb.shows("month's end")
	}
	overview.shows("Held")
	p.order(1, "order-placed")
	p.order(2, "order-placed")
	overview.shows("2 held")
	there.until(`document.body.innerText.match(/Held\s+2\b/)`, "the other browser shows what is held")

	there.tabTo("Resume")
	there.do(chromedp.KeyEvent("\r"))
	for _, tb := range []*tab{here, there, overview} {
		tb.shows("Flowing")
		tb.until(`document.body.innerText.match(/Pending\s+0\b/)`, "what was held is delivered")
		tb.unloaded()
		tb.clean()
	}
}

// TestOpenedWhileItChanges: a page that is opened at the moment when what it shows changes ends with the newest state, whichever of the page's first read, its
// stream and the change came first.
func TestOpenedWhileItChanges(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	tb := p.enter(p.url, "/messages")
	for round := range 6 {
		release := receiver.wait()
		id := p.order(round, "order-placed")
		switch round % 3 {
		case 0: // before the page asks
			release()
			tb.goTo("/messages/" + id)
		case 1: // while it asks
			go release()
			tb.goTo("/messages/" + id)
		case 2: // after it was shown, maybe before its stream stands
			tb.goTo("/messages/" + id)
			tb.until(`document.querySelector(".head .state")`, "the message is shown")
			release()
		}
		tb.state("dispatched")
	}
	tb.phase("live")
	tb.clean()
}
