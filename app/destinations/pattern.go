package destinations

import (
	"regexp"
	"strings"
)

var patternForm = regexp.MustCompile(`^[a-z0-9*?-]{1,64}$`)

// maxType is the length of the longest message type.
const maxType = 63

// judgePattern says what is wrong with a pattern of types; "" when it is sound. * stands for any characters, ? for one. A pattern that no
// type can match would look like a route and be none.
func judgePattern(pattern string) string {
	if !patternForm.MatchString(pattern) {
		return "must be 1 to 64 of a-z 0-9 - * ?, such as order-*"
	}
	rest := strings.TrimLeft(pattern, "*")
	least := len(rest) - strings.Count(rest, "*")
	if rest == "" || rest[0] != '?' && (rest[0] < 'a' || rest[0] > 'z') {
		if rest == pattern {
			return "can match no type, since a type begins with a letter"
		}
		least++ // a star must give the letter that a type begins with
	}
	if least > maxType {
		return "can match no type, since a type has at most 63 characters"
	}
	return ""
}
