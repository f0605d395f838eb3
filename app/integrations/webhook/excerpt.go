package webhook

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lengths of what is kept of a target's words, in bytes.
const (
	excerptBytes = 1 << 10
	errorBytes   = 300
)

// plain returns at most limit bytes of text that a screen, a log line and a terminal can show as it is: valid UTF-8 without control
// characters and without those that turn or hide text.
func plain(text string, limit int) string {
	// Bytes are cut first, so that cost is bounded; a rune that the cut split goes too.
	if len(text) > limit {
		text = text[:limit]
		for i := 1; i <= utf8.UTFMax && i <= len(text); i++ {
			if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRuneInString(tail) {
					text = text[:len(text)-i]
				}
				break
			}
		}
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			return -1
		default:
			return r // a byte that is no UTF-8 arrives as U+FFFD
		}
	}, text)
	// Replaced bytes have grown to three.
	for len(text) > limit {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return strings.TrimSpace(text)
}
