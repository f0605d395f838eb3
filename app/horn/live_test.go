package horn_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestDispatchedWithoutReload follows one message from the commit to its end on a screen that nobody touches, and a second one that fails, is
// retried and delivered, and a third that is refused for good.
func TestDispatchedWithoutReload(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	list := p.enter(p.url, "/messages")
	list.shows("No message yet")
	list.mark()

	release := receiver.wait()
	first := p.order(1001, "order-placed")
	list.shows(first)
	list.shows("Processing")
	release()
	list.lists(p, "", 1)
	list.shows("Dispatched")

	receiver.answer(http.StatusServiceUnavailable, http.StatusInternalServerError)
	second := p.order(1002, "order-placed")
	list.lists(p, "", 2)
	receiver.answer(http.StatusBadRequest)
	p.order(1003, "order-placed")
	list.lists(p, "", 3)
	list.shows("Dead letter")
	list.unloaded()
	list.clean()

	// Its page tells what happened to the second: two failures with their evidence, then the delivery.
	list.goTo("/messages/" + second)
	list.state("dispatched")
	list.shows("Attempt 1: ")
	list.shows("status 503")
	list.shows("Attempt 2: failed, status 500")
	list.shows("Attempt 3: dispatched")
	list.clean()
}

// TestOneMessage: the page of a message follows it from its claim over a failure to its end.
func TestOneMessage(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	release := receiver.wait()
	receiver.answer(http.StatusInternalServerError)
	id := p.order(1, "order-placed")
	tb := p.enter(p.url, "/messages/"+id)
	tb.mark()
	tb.state("processing")
	release()
	tb.state("dispatched")
	tb.shows("Attempt 1: failed, status 500")
	tb.shows("Attempt 2: dispatched")
	tb.unloaded()
	tb.clean()
}

// TestTwoBrowsers: two people see the same, on two views at once.
func TestTwoBrowsers(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	one, other, overview := p.enter(p.url, "/messages"), p.enter(p.url, "/messages"), p.enter(p.url, "/")
	for _, tb := range []*tab{one, other, overview} {
		tb.mark()
	}
	for number := range 12 {
		p.order(number, "order-placed")
	}
	receiver.answer(http.StatusBadRequest)
	p.order(12, "order-cancelled")
	for _, tb := range []*tab{one, other} {
		tb.lists(p, "", 13)
	}
	overview.figures(p)
	if got := overview.figure("Dead letters"); got != "1" {
		t.Errorf("the overview shows %s dead letters, want 1", got)
	}
	for _, tb := range []*tab{one, other, overview} {
		tb.unloaded()
		tb.clean()
	}
}

// TestDestinationPausedElsewhere: what another person does to a destination is shown, and what waits for it.
func TestDestinationPausedElsewhere(t *testing.T) {
	t.Parallel()
	receiver := newTarget(t)
	p := newProgram(t, quickRetries)
	p.destination("shop", receiver.URL, "*")
	list, one := p.enter(p.url, "/destinations"), p.enter(p.url, "/destinations/shop")
	for _, tb := range []*tab{list, one} {
		tb.shows("Flowing")
		tb.mark()
	}
	p.must(http.StatusOK, http.MethodPost, "/v1/destinations/shop/pause", `{}`)
	for _, tb := range []*tab{list, one} {
		tb.shows("paused by token:shop")
	}
	id := p.order(1, "order-placed")
	one.shows(id)
	one.shows("Pending")
	p.must(http.StatusOK, http.MethodPost, "/v1/destinations/shop/resume", `{}`)
	for _, tb := range []*tab{list, one} {
		tb.shows("Flowing")
	}
	one.lists(p, "&handler=shop", 1)

	p.destination("billing", receiver.URL, "order-cancelled")
	list.shows("billing")
	p.must(http.StatusOK, http.MethodDelete, "/v1/destinations/billing", "")
	list.until(`!document.querySelector(".destinations").innerText.includes("billing")`, "the deleted destination is gone")
	for _, tb := range []*tab{list, one} {
		tb.unloaded()
		tb.clean()
	}
}

// TestDocumentLive: a document that somebody else changes, deletes and writes again is shown as it is.
func TestDocumentLive(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries)
	put := func(body string) {
		p.must(http.StatusCreated, http.MethodPost, "/v1/transactions", fmt.Sprintf(`{"changes":[{"op":"put","collection":"orders","id":"1","body":%s}]}`, body))
	}
	tb := p.enter(p.url, "/documents/orders/1")
	tb.expect("404")
	tb.shows("There is no such document")
	tb.mark()
	put(`{"total": 12345678901234567890}`)
	tb.document(p, "orders", "1", 1)
	tb.shows("12345678901234567890")
	for version := 2; version <= 5; version++ {
		put(fmt.Sprintf(`{"step": %d}`, version))
	}
	tb.document(p, "orders", "1", 5)
	tb.shows(`"step": 5`)
	p.must(http.StatusCreated, http.MethodPost, "/v1/transactions", `{"changes":[{"op":"delete","collection":"orders","id":"1"}]}`)
	tb.shows("There is no such document")
	put(`{"again": true}`)
	tb.shows(`"again": true`)
	tb.unloaded()
	tb.clean()
}
