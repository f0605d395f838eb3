package ui

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// everyView is each view with a text that shows it is there.
var everyView = []struct{ name, path, text string }{
	{"overview", "/", "Happening now"},
	{"messages", "/messages", "Older"},
	{"message", "/messages/019ace800004-7c1e-7b2a-9d3f-aa81c05e0004", "traceparent"},
	{"dead-letters", "/dead-letters", "422 Unprocessable"},
	{"access", "/access", "Sign out everywhere else"},
	{"audit", "/audit", "replayed a delivery"},
	{"destinations", "/destinations", "shop.example"},
	{"destination", "/destinations/shop", "Latest messages"},
	{"desk", "/desk", "Most borrowed"},
	{"documents", "/documents/orders", "2026.11"},
	{"document", "/documents/orders/1001", "12345678901234567890"},
	{"document-with-dot", "/documents/orders/2026.11", "Version 12"},
	{"records", "/records", "Recover dead letters"},
	{"record", "/records/runbooks/recover-dead-letters", "rejected"},
	{"setting", "/records/settings/retry-cap", "in place of 1h"},
	{"settings", "/records?show=settings", "half an hour"},
	{"conformance", "/records?show=conformance", "1 of 2 met"},
	{"nowhere", "/no/such/view", "No view has this address"},
}

// TestViews visits every view, wide and narrow, light and dark: it is there, nothing reaches over the edge, and the browser complains
// about nothing, the content security policy included.
func TestViews(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	a.fill()
	tb := newBrowser(t).open(a, "/")
	// Ten minutes of readings, as the tab would have kept them, so that the chart has something to draw.
	eval[any](tb, `(() => {
	  const step = 5000, now = Math.floor(Date.now() / step);
	  const slots = Array.from({length: 110}, (_, i) => [now - 110 + i, {dispatched: 5 * (90 + 60 * Math.sin(i / 9) + 14 * Math.sin(i * 1.7)), failed: i > 60 && i < 78 ? 5 * 21 : 2, seconds: 5}]);
	  sessionStorage.setItem("posthorn-throughput", JSON.stringify({slots, last: null}));
	})()`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390, 360} {
			if scheme == "dark" && width == 360 {
				continue
			}
			tb.scheme(scheme)
			tb.do(chromedp.EmulateViewport(width, 900))
			for _, view := range everyView {
				tb.goTo(view.path)
				tb.shows(view.text)
				tb.phase("live")
				if over := tb.over(); over > 0 {
					t.Errorf("%s at %d px reaches %d px over the edge", view.name, width, over)
				}
				tb.accessible(view.name + ", " + scheme)
				if width != 360 {
					tb.shot(view.name + "-" + scheme + "-" + map[int64]string{1440: "desk", 390: "phone"}[width])
				}
			}
		}
	}
	tb.clean()
}
