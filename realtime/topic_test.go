package realtime

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParseTopic(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"backlog", "messages/018f", "documents/loans/a.b:c~d@e", "documents/Bücher/ä", strings.Repeat("a", MaxTopicLength), "a/b/c/d", "-", "(1)",
	} {
		if topic, err := ParseTopic(s); err != nil || string(topic) != s {
			t.Errorf("topic %q is refused: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "/", "/a", "a/", "a//b", "a b", "a\tb", "a\nb", "a\rb", "a\x00b", "a\x7fb", "a\u0085b", "a\u2028b", "a\u200bb", "a\u202eb", "a\u00a0b",
		"a\xffb", "*", "messages/*", strings.Repeat("a", MaxTopicLength+1),
	} {
		if _, err := ParseTopic(s); !errors.Is(err, ErrTopic) {
			t.Errorf("topic %q: %v", s, err)
		}
	}
	if _, err := ParseTopic(strings.Repeat("a", MaxTopicLength+1)); !errors.Is(err, ErrTopicTooLong) {
		t.Errorf("long topic: %v", err)
	}
}

func TestFreshnessJSON(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Freshness{
		`{"mode":"immediate"}`: Immediate(), `{"mode":"advisory","authority":"use-case:lend"}`: Advisory("use-case:lend"),
	} {
		got, err := json.Marshal(f)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		var back Freshness
		if err := json.Unmarshal(got, &back); err != nil || back != f {
			t.Errorf("read back %+v, %v", back, err)
		}
	}
	for _, f := range []Freshness{{}, {Mode: "soon"}, {Mode: ModeImmediate, Authority: "x"}, Advisory("")} {
		if _, err := json.Marshal(f); !errors.Is(err, ErrFreshness) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, s := range []string{`{}`, `{"mode":"advisory"}`, `{"mode":"later"}`, `{"mode":7}`, `"immediate"`} {
		var f Freshness
		if err := json.Unmarshal([]byte(s), &f); err == nil {
			t.Errorf("%s is read as %+v", s, f)
		}
	}
}
