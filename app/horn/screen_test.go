package horn_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// What a screen must equal is read from the API, at the moment of comparison; both may move meanwhile, so the comparison is repeated.

// listed is what a list of messages shows, or should show: a line for each message.
type listed []string

// listedNow reads it off the screen.
func (tb *tab) listedNow() listed {
	tb.t.Helper()
	return eval[listed](tb, `[...document.querySelectorAll(".messages tbody tr")].map((row) =>
	  row.querySelector(".id").innerText.trim() + " " + row.querySelector(".state").dataset.state)`)
}

// listed reads it from the API.
func (p *program) listed(query string) listed {
	p.t.Helper()
	var page struct {
		Messages []struct {
			ID         string
			Deliveries []struct{ State string }
		}
	}
	p.read("/v1/messages?limit=50"+query, &page)
	list := listed{}
	for _, m := range page.Messages {
		list = append(list, m.ID+" "+worst(m.Deliveries))
	}
	return list
}

// worst is the state that a message with several deliveries is shown in: what needs somebody goes before what is under way.
func worst(deliveries []struct{ State string }) string {
	for _, state := range []string{"dead-letter", "processing", "pending"} {
		for _, d := range deliveries {
			if d.State == state {
				return state
			}
		}
	}
	return "dispatched"
}

// lists waits until the list on the screen is that of the API, and settled: nothing waits or is under way.
func (tb *tab) lists(p *program, query string, rows int) {
	tb.t.Helper()
	waitFor(tb.t, "the list equals the query, settled, with "+strconv.Itoa(rows)+" rows", func() bool {
		want := p.listed(query)
		settled := !slices.ContainsFunc(want, func(line string) bool {
			return strings.HasSuffix(line, " pending") || strings.HasSuffix(line, " processing")
		})
		return settled && len(want) == rows && slices.Equal(want, tb.listedNow())
	}, tb.text)
}

// figure reads a figure of the overview, by its name.
func (tb *tab) figure(name string) string {
	tb.t.Helper()
	return eval[string](tb, fmt.Sprintf(
		`[...document.querySelectorAll(".figure")].find((f) => f.querySelector("dt").innerText.trim() === %q)?.querySelector(".value").innerText.trim() ?? ""`, name))
}

// figures waits until the overview shows the backlog of the API, with nothing pending.
func (tb *tab) figures(p *program) {
	tb.t.Helper()
	waitFor(tb.t, "the overview equals the backlog", func() bool {
		var backlog struct {
			Total struct{ Pending, Processing, Failed int64 }
		}
		p.read("/v1/backlog", &backlog)
		total := backlog.Total
		return total.Pending == 0 && total.Processing == 0 && tb.figure("Pending") == "0" && tb.figure("Processing") == "0" &&
			tb.figure("Dead letters") == strconv.FormatInt(total.Failed, 10)
	}, tb.text)
}

// state waits until the page of a message shows a state beside its heading.
func (tb *tab) state(state string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`document.querySelector(".head .state")?.dataset.state === %q`, state), "the message is "+state)
}

// document waits until the page of a document shows the version and the body of the API.
func (tb *tab) document(p *program, collection, id string, version int) {
	tb.t.Helper()
	var found struct{ Version int }
	p.read("/v1/documents/"+url.PathEscape(collection)+"/"+url.PathEscape(id), &found)
	if found.Version != version {
		tb.t.Fatalf("the document has version %d, want %d", found.Version, version)
	}
	tb.shows(fmt.Sprintf("Version %d", version))
}
