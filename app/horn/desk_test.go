package horn_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// typed fills fields of a form of the desk, each named by what its placeholder suggests, and sends it.
func (tb *tab) typed(form string, values ...string) {
	tb.t.Helper()
	for i := 0; i+1 < len(values); i += 2 {
		tb.do(chromedp.SendKeys(chromedp.CSS(form+` input[placeholder="`+values[i]+`"]`), values[i+1]))
	}
	tb.do(chromedp.Click(chromedp.CSS(form + ` form button`)))
}

const lend, takeBack, reserve = `section[aria-labelledby="lend"]`, `section[aria-labelledby="take-back"]`, `section[aria-labelledby="reservations"]`

// TestTwoDesks: a clerk lends and takes back on one screen, and another, where nobody touches anything, shows it.
func TestTwoDesks(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries+"\nlending: true\n")
	for path, body := range map[string]string{
		"/v1/lending/members": `{"id":"M-101","name":"Ada Byron","email":"ada@example.org"}`,
		"/v1/lending/copies":  `{"id":"C-101","work":"moby-dick","title":"Moby-Dick"}`,
	} {
		p.must(http.StatusCreated, http.MethodPost, path, body)
	}
	p.must(http.StatusCreated, http.MethodPost, "/v1/lending/members", `{"id":"M-102","name":"Emil Berliner","email":"emil@example.org"}`)
	one, other := p.enter(p.url, "/desk"), p.enter(p.url, "/desk")
	one.shows("Nothing was lent yet")
	other.shows("0 on loan")
	one.mark()
	other.mark()

	one.typed(lend, "M-101", "M-101", "C-101", "C-101")
	other.until(`document.querySelector("#loans tbody tr td .state")?.innerText.trim() === "on loan"`, "the other desk shows the loan")
	other.shows("1 on loan")
	other.shows("Most borrowed") // the statistics come by an event of their own

	one.expect("409")
	one.typed(lend, "M-101", "M-102", "C-101", "C-101")
	one.shows("The copy is on loan.")
	one.typed(reserve, "M-101", "M-102", "moby-dick", "moby-dick")
	other.shows("place 1")
	other.shows("Provisional: decided by journeys/fulfil-a-reservation")

	one.typed(takeBack, "C-101", "C-101")
	other.until(`[...document.querySelectorAll(".state")].some((s) => s.innerText.trim() === "ready")`, "the other desk shows that the copy is held")
	other.until(`document.querySelector("#loans tbody tr td .state")?.innerText.trim() === "returned"`, "the other desk shows the return")
	other.do(chromedp.Click(chromedp.CSS(`button[aria-label="Lend the copy held for M-102"]`)))
	one.until(`document.querySelector("#loans tbody tr td:nth-child(4)")?.innerText === "M-102"`, "the first desk shows who collected")
	for _, tb := range []*tab{one, other} {
		tb.unloaded()
		tb.clean()
	}
}
