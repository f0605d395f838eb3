package app

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/posthorn/posthorn/app/access"
)

var (
	lasting  = regexp.MustCompile(`(^|_)(duration|timeout|age|lag|latency|overlap|wait|after|delay|elapsed|interval|ttl|life|span|period|took|heartbeat|horizon|p50|p99|seconds)(_|$)`)
	saysUnit = regexp.MustCompile(`(?i)\b(milli|micro|nano)?seconds\b`)
	writtenD = regexp.MustCompile(`\b\d+(ms|s|m|h)\b`)
)

// TestDurationsInTheAPIKeepToOneRule reads the OpenAPI document: a duration that is told is a number whose name ends in _seconds, one that is set is
// text, and its description or example shows the form.
func TestDurationsInTheAPIKeepToOneRule(t *testing.T) {
	t.Parallel()
	options := testOptions(t, t.TempDir())
	options.Config.Lending = true
	a := open(t, options)
	request := httptest.NewRequestWithContext(access.With(t.Context(), machine), "GET", "/openapi.json", nil)
	answer := httptest.NewRecorder()
	a.Handler().ServeHTTP(answer, request)
	type schema struct {
		Type        any
		Description string
		Format      string
		Examples    []any
		Example     any
	}
	numbers, texts := map[string]bool{}, map[string]bool{}
	judge := func(where, name string, s schema) {
		kinds, _ := s.Type.([]any)
		if kinds == nil {
			kinds = []any{s.Type}
		}
		number := slices.Contains(kinds, any("number")) || slices.Contains(kinds, any("integer"))
		text := slices.Contains(kinds, any("string")) && s.Format != "date-time"
		switch lasts := lasting.MatchString(name); {
		case number && (lasts || saysUnit.MatchString(s.Description)):
			numbers[name] = true
			if !regexp.MustCompile(`[a-z0-9]_seconds$`).MatchString(name) {
				t.Errorf("%s: %s is a number that lasts, and its name does not end in _seconds", where, name)
			}
		case text && lasts:
			texts[name] = true
			shown, _ := json.Marshal([]any{s.Example, s.Examples, s.Description})
			if !writtenD.Match(shown) {
				t.Errorf("%s: %s is a duration as text, and nothing shows its form: %s", where, name, shown)
			}
		}
	}
	var document any
	if err := json.Unmarshal(answer.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	var walk func(where string, node any)
	walk = func(where string, node any) {
		read := func(value any) (s schema) {
			raw, _ := json.Marshal(value)
			_ = json.Unmarshal(raw, &s)
			return s
		}
		switch node := node.(type) {
		case map[string]any:
			if properties, ok := node["properties"].(map[string]any); ok {
				for name, property := range properties {
					judge(where, name, read(property))
				}
			}
			if name, ok := node["name"].(string); ok && node["in"] == "query" {
				s := read(node["schema"])
				s.Description, _ = node["description"].(string)
				judge(where, name, s)
			}
			for name, below := range node {
				walk(where+"/"+name, below)
			}
		case []any:
			for _, below := range node {
				walk(where, below)
			}
		}
	}
	walk("", document)
	for _, name := range []string{"oldest_pending_age_seconds", "duration_p50_seconds", "duration_p99_seconds", "duration_seconds", "lag_seconds"} {
		if !numbers[name] {
			t.Errorf("%s is not in the document", name)
		}
	}
	for _, name := range []string{"timeout", "overlap", "retry_after", "wait"} {
		if !texts[name] {
			t.Errorf("%s is not in the document as text", name)
		}
	}
}
