package cli

import (
	"strings"
	"testing"
)

func TestLastLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"\n\n"}, ""},
		{[]string{"one\ntwo\n"}, "two"},
		{[]string{"one\ntw", "o\n", "\n  \n"}, "two"},
		{[]string{"one\ntwo"}, "two"},
		{[]string{"one\n\x1b[31mred\xff\n"}, "\uFFFD[31mred\uFFFD"},
		{[]string{strings.Repeat("x", 10*maxLine)}, strings.Repeat("x", maxLine)},
	} {
		var l lastLine
		for _, text := range tt.writes {
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("wrote %d of %d, %v", n, len(text), err)
			}
		}
		if got := l.text(); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.writes, got, tt.want)
		}
	}
}
