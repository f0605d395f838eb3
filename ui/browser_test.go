package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
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

// theChromium is the one process that all tests of the package share; each has a profile of its own in it.
var theChromium = sync.OnceValues(func() (context.Context, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "posthorn-ui-")
	if err != nil {
		return nil, err
	}
	ctx, end := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.UserDataDir(folder), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("lang", "en-GB"),
	))
	closeChromium = func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has gone
		end()
		_ = os.RemoveAll(folder)
	}
	return ctx, chromedp.Do(ctx)
})

var closeChromium = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeChromium()
	os.Exit(code)
}

// browser is a profile of a test's own: no other test sees its cookies, storage, locks and channels.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// newBrowser fails where there is no browser: such a machine cannot show that the console works.
func newBrowser(t *testing.T) *browser {
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
	return &browser{t, ctx}
}

// tab is one page, with everything that it complained about.
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

// open makes a new tab and leads it to a path.
func (b *browser) open(a *appliance, path string) *tab {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	tb := &tab{t: b.t, ctx: ctx, base: a.server.URL}
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
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: tellViolations})
	if err != nil {
		b.t.Fatalf("watch the policy: %v", err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}); err != nil {
		b.t.Fatalf("set the zone: %v", err)
	}
	tb.do(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(a.server.URL+path))
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

// front brings the tab before the others of its window.
func (tb *tab) front() {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, page.BringToFront, cdp.Empty{}); err != nil {
		tb.t.Fatalf("bring to front: %v", err)
	}
	tb.until(`!document.hidden`, "the tab is in front")
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
	for deadline := time.Now().Add(patience); ; {
		if eval[bool](tb, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(deadline) {
			tb.t.Fatalf("waited in vain until %s\nthe page shows: %s", what, tb.text())
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// shows waits for a text on the page.
func (tb *tab) shows(text string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf("document.body?.innerText.includes(%q)", text), "the page shows "+text)
}

// live waits for a phase of the indicator.
func (tb *tab) phase(phase string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`document.querySelector(".live")?.dataset.phase === %q`, phase), "the indicator says "+phase)
}

// click presses what a selector finds.
func (tb *tab) click(selector string) {
	tb.t.Helper()
	tb.do(chromedp.Click(chromedp.CSS(selector)))
}

// press presses the button or link with a text.
func (tb *tab) press(text string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`((e) => e && (e.click(), true))([...document.querySelectorAll("button, a")].find((e) => e.innerText.trim().startsWith(%q) && !e.disabled))`, text),
		text+" can be pressed")
}

// waitFor waits for something outside the page.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// shot keeps a picture where somebody asked for pictures: POSTHORN_SHOTS=/tmp/shots go test ./ui.
func (tb *tab) shot(name string) {
	tb.t.Helper()
	folder := os.Getenv("POSTHORN_SHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		tb.t.Fatalf("take picture: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		tb.t.Errorf("keep picture: %v", err)
	}
}
