package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func console(t *testing.T) *Console {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatalf("make console: %v", err)
	}
	return c
}

func ask(c *Console, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result()
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := console(t)
	for _, tc := range []struct {
		method, target string
		status         int
		kind, cache    string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", cacheChecked},
		{"HEAD", "/", 200, "text/html; charset=utf-8", cacheChecked},
		{"GET", "/messages/018f-abc", 200, "text/html; charset=utf-8", cacheChecked},
		{"GET", "/documents/orders/2026.11", 200, "text/html; charset=utf-8", cacheChecked},
		{"GET", "/no/such/view", 200, "text/html; charset=utf-8", cacheChecked},
		{"GET", "/setup", 200, "text/html; charset=utf-8", cacheChecked},
		{"GET", "/static/app.js", 200, "text/javascript; charset=utf-8", cacheChecked},
		{"GET", "/static/" + c.version + "/app.js", 200, "text/javascript; charset=utf-8", cacheForever},
		{"GET", "/static/" + c.version + "/lib/realtime/index.js", 200, "text/javascript; charset=utf-8", cacheForever},
		{"GET", "/static/0123456789abcdef/app.js", 200, "text/javascript; charset=utf-8", cacheChecked},
		{"GET", "/static/" + c.version + "/icon.svg", 200, "image/svg+xml", cacheForever},
		{"GET", "/static/" + c.version + "/console.webmanifest", 200, "application/manifest+json", cacheForever},
		{"GET", "/static/css/tokens.css", 200, "text/css; charset=utf-8", cacheChecked},
		{"GET", "/static/none.js", 404, "", ""},
		{"GET", "/static/../ui.go", 404, "", ""},
		{"GET", "/static/", 404, "", ""},
		{"GET", "/favicon.ico", 404, "", ""},
		{"GET", "/v1/nothing", 404, "", ""},
		{"GET", "/v1", 404, "", ""},
		{"POST", "/", 405, "", ""},
		{"DELETE", "/messages/1", 405, "", ""},
	} {
		answer := ask(c, tc.method, tc.target)
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != tc.status {
			t.Errorf("%s %s: status %d, want %d", tc.method, tc.target, answer.StatusCode, tc.status)
		}
		if tc.kind != "" && answer.Header.Get("Content-Type") != tc.kind {
			t.Errorf("%s %s: content type %q, want %q", tc.method, tc.target, answer.Header.Get("Content-Type"), tc.kind)
		}
		if tc.cache != "" && answer.Header.Get("Cache-Control") != tc.cache {
			t.Errorf("%s %s: cache control %q, want %q", tc.method, tc.target, answer.Header.Get("Cache-Control"), tc.cache)
		}
		if tc.method == "HEAD" && len(body) > 0 {
			t.Errorf("HEAD %s: a body of %d bytes", tc.target, len(body))
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", tc.method, tc.target, name, got)
			}
		}
	}
}

// TestRevalidation: what has not changed is not sent again, in either coding, and both codings are the same file.
func TestRevalidation(t *testing.T) {
	t.Parallel()
	c := console(t)
	for _, coding := range []string{"", "gzip", "br;q=1, gzip;q=0.5", "gzip;q=0"} {
		first := ask(c, "GET", "/static/app.js", "Accept-Encoding", coding)
		body, _ := io.ReadAll(first.Body)
		if zipped := strings.Contains(coding, "gzip") && !strings.Contains(coding, "q=0") || strings.Contains(coding, "q=0.5"); zipped != (first.Header.Get("Content-Encoding") == "gzip") {
			t.Errorf("asked for %q, got the coding %q", coding, first.Header.Get("Content-Encoding"))
		} else if zipped {
			reader, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatalf("read gzip: %v", err)
			}
			body, _ = io.ReadAll(reader)
		}
		if !bytes.Equal(body, c.files["app.js"].body) {
			t.Errorf("coding %q: another file than the embedded one", coding)
		}
		again := ask(c, "GET", "/static/app.js", "Accept-Encoding", coding, "If-None-Match", `"other", W/`+first.Header.Get("ETag"))
		if left, _ := io.ReadAll(again.Body); again.StatusCode != http.StatusNotModified || len(left) > 0 {
			t.Errorf("coding %q: asked again, status %d with %d bytes", coding, again.StatusCode, len(left))
		}
	}
}

func TestBuiltWrong(t *testing.T) {
	t.Parallel()
	if _, err := newConsole(fstest.MapFS{"app.js": {Data: []byte("1")}}); err == nil {
		t.Error("a console without its page was made")
	}
}

// TestIndexNamesFiles: every file that the page names is there, under the version of all files.
func TestIndexNamesFiles(t *testing.T) {
	t.Parallel()
	c := console(t)
	named := regexp.MustCompile(`"(/static/[^"]+)"`).FindAllStringSubmatch(string(c.index.body), -1)
	if len(named) < 5 {
		t.Fatalf("the page names %d files", len(named))
	}
	for _, m := range named {
		if answer := ask(c, "GET", m[1]); answer.StatusCode != 200 || answer.Header.Get("Cache-Control") != cacheForever {
			t.Errorf("%s: status %d, cache control %q", m[1], answer.StatusCode, answer.Header.Get("Cache-Control"))
		}
	}
}

// own calls visit with every file that is ours.
func own(t *testing.T, visit func(name, text string)) {
	t.Helper()
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "static/vendor/") {
			return err
		}
		text, err := fs.ReadFile(embedded, name)
		visit(strings.TrimPrefix(name, "static/"), string(text))
		return err
	})
	if err != nil {
		t.Fatalf("walk static: %v", err)
	}
}

// TestNarrowFunctions holds that only the library knows topics and streams (P56): views import its index and nothing beside it.
func TestNarrowFunctions(t *testing.T) {
	t.Parallel()
	imports := regexp.MustCompile(`\b(?:from|import)\s+\(?"([^"]+)"`)
	connects := regexp.MustCompile(`EventSource|text/event-stream|/v1/events|Last-Event-ID|\btopics?\b|\.listen\(|navigator\.locks`)
	seen := 0
	own(t, func(name, text string) {
		if path.Ext(name) != ".js" {
			return
		}
		inside := strings.HasPrefix(name, "lib/realtime/")
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			target := path.Join(path.Dir(name), m[1])
			switch {
			case !strings.HasPrefix(m[1], "."):
				t.Errorf("%s imports %q, which is no relative path", name, m[1])
			case inside && !strings.HasPrefix(target, "lib/realtime/"):
				t.Errorf("%s imports %s: the library must be usable without the console", name, target)
			case !inside && strings.HasPrefix(target, "lib/realtime/") && target != "lib/realtime/index.js":
				t.Errorf("%s imports %s, want lib/realtime/index.js", name, target)
			case !inside && target == "lib/realtime/index.js":
				seen++
			}
		}
		if found := connects.FindString(text); found != "" && !inside {
			t.Errorf("%s says %q, which is the library's business", name, found)
		}
	})
	if seen < 5 {
		t.Errorf("only %d modules subscribe: the test looks at the wrong files", seen)
	}
}

// TestNothingFromElsewhere: no file of ours names another origin to load from, runs text as code, or writes markup from text.
func TestNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`\beval\(|new Function|innerHTML|outerHTML|dangerouslySetInnerHTML|document\.write|@import|url\((?:'|")?https?:|(?:src|href)="(?:https?:)?//`)
	own(t, func(name, text string) {
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if lines := strings.Count(text, "\n"); lines > 300 {
			t.Errorf("%s has %d lines", name, lines)
		}
	})
}
