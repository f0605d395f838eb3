package destinations

import (
	"path"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/outbox"
	"pgregory.net/rapid"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for pattern, sound := range map[string]bool{
		"*": true, "order-*": true, "order-placed": true, "?": true, "?-*": true, "*9": true, "**": true, strings.Repeat("a", 63): true,
		"*" + strings.Repeat("a", 63): true, "*" + strings.Repeat("9", 62): true,
		"": false, "Order": false, "9*": false, "-": false, "a_b": false, "[a]": false, "a b": false, "a\n": false,
		strings.Repeat("a", 64): false, strings.Repeat("a", 65): false, "*" + strings.Repeat("9", 63): false, strings.Repeat("?", 64): false,
	} {
		if sentence := judgePattern(pattern); (sentence == "") != sound {
			t.Errorf("%q: %q, want sound %t", pattern, sentence, sound)
		}
	}
}

// What matches a type must be sound: a pattern made of a type by putting wildcards into it always is.
func TestPatternsThatMatchAreSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z0-9-]{0,62}`).Draw(t, "type")
		pattern := []byte(name)
		for i := range pattern {
			if rapid.IntRange(0, 4).Draw(t, "wild") == 0 {
				pattern[i] = "*?"[rapid.IntRange(0, 1).Draw(t, "which")]
			}
		}
		if matched, err := path.Match(string(pattern), name); err != nil || !matched || !outbox.ValidType(name) {
			t.Fatalf("%s does not match %s: %v", pattern, name, err)
		}
		if sentence := judgePattern(string(pattern)); sentence != "" {
			t.Fatalf("%s matches %s but %s", pattern, name, sentence)
		}
	})
}
