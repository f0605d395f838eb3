package horn_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience bounds how long a test waits for what must come; it measures nothing.
const patience = 60 * time.Second

// chromium finds the browser.
func chromium() (string, error) {
	for _, name := range []string{"headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("no Chromium found. Debian: apt-get install --no-install-recommends chromium; or run: make test")
}

// theChromium is the one process that all tests of the package share; each has profiles of its own in it.
var theChromium = sync.OnceValues(func() (context.Context, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	ctx, end := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(scratch, "chromium")), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("lang", "en-GB"),
	))
	closeChromium = func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has gone
		end()
	}
	return ctx, chromedp.Do(ctx)
})

var closeChromium = func() {}

// tab is a page in a profile of its own, with everything that it complained about.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string
	expected   []string // parts of complaints that the test provokes
}

// tellViolations makes the page itself say what its policy refused.
const tellViolations = `addEventListener("securitypolicyviolation", (e) => console.error("csp: " + e.violatedDirective + " " + e.blockedURI))`

// open opens an address in a new profile: a person at another machine.
func open(t *testing.T, address string) *tab {
	t.Helper()
	parent, err := theChromium()
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	ctx, end := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		end()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a profile: %v", err)
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	tb := &tab{t: t, ctx: ctx, base: at.Scheme + "://" + at.Host}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleException {
				tb.complain(fmt.Sprintf("%s: %s %s", m.Type, m.Text, m.URL))
			}
		}
	}()
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: tellViolations}); err != nil {
		t.Fatalf("watch the policy: %v", err)
	}
	tb.do(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address))
	return tb
}

// enter signs a new profile in by a one-time link, whose host may be another's, as behind a proxy, and leads it to a path.
func (p *program) enter(base, path string) *tab {
	p.t.Helper()
	tb := open(p.t, base+strings.TrimPrefix(p.link(), p.url))
	tb.until(`document.title === "Overview · Posthorn" && location.pathname === "/" && location.hash === ""`, "the link has signed in")
	if path != "/" {
		tb.goTo(path)
	}
	tb.phase("live")
	return tb
}

func (tb *tab) complain(text string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.complaints = append(tb.complaints, text)
}

// expect names parts of complaints that the test itself provokes, such as a refused request.
func (tb *tab) expect(parts ...string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.expected = append(tb.expected, parts...)
}

// clean holds that the page complained about nothing.
func (tb *tab) clean() {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
complaints:
	for _, c := range tb.complaints {
		for _, part := range tb.expected {
			if strings.Contains(c, part) {
				continue complaints
			}
		}
		tb.t.Errorf("the page complained: %s", c)
	}
	tb.complaints = nil
}

func (tb *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tb.t.Fatalf("drive the browser: %v\nthe page shows: %s", err, tb.text())
	}
}

// scheme makes the system's theme light or dark.
func (tb *tab) scheme(name string) {
	tb.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	if _, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		tb.t.Fatalf("emulate %s scheme: %v", name, err)
	}
}

// goTo leads the tab to another address, as typed into it.
func (tb *tab) goTo(path string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(tb.base + path))
}

// eval answers the value of an expression, awaited.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return value
}

// text is what the page shows.
func (tb *tab) text() string {
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
	return text
}

// until waits for an expression to become true.
func (tb *tab) until(expression, what string) {
	tb.t.Helper()
	waitFor(tb.t, what, func() bool { return eval[bool](tb, "Boolean("+expression+")") }, tb.text)
}

// shows waits for a text on the page.
func (tb *tab) shows(text string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf("document.body?.innerText.includes(%q)", text), "the page shows "+text)
}

// phase waits for a phase of the indicator.
func (tb *tab) phase(phase string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`document.querySelector(".live")?.dataset.phase === %q`, phase), "the indicator says "+phase)
}

// mark puts a mark into the page that no reload would leave; unloaded holds that it is there.
func (tb *tab) mark() {
	tb.t.Helper()
	eval[bool](tb, `window.stillTheSamePage = true`)
}

func (tb *tab) unloaded() {
	tb.t.Helper()
	if !eval[bool](tb, `Boolean(window.stillTheSamePage)`) {
		tb.t.Error("the page was loaded again")
	}
}

// waitFor waits for a condition; shown, if given, tells what there was instead.
func waitFor(t *testing.T, what string, done func() bool, shown ...func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			text := ""
			for _, show := range shown {
				text += "\nthe page shows: " + show()
			}
			t.Fatalf("waited in vain until %s%s", what, text)
		}
	}
}
