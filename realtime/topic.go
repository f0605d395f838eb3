package realtime

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTopicLength is the longest topic in bytes.
const MaxTopicLength = 256

// ErrTopic is wrapped by every error that refuses a topic for its form.
var ErrTopic = errors.New("invalid topic")

// ErrTopicTooLong is wrapped beside [ErrTopic] where the length is what is wrong.
var ErrTopicTooLong = errors.New("topic too long")

// Topic is what a screen listens to: one or more segments joined by slashes, such as "backlog" or "messages/018f". A topic is
// always read inside one tenant, so it never names the tenant itself.
type Topic string

// ParseTopic checks a topic that came from outside.
func ParseTopic(s string) (Topic, error) {
	t := Topic(s)
	return t, t.check()
}

// check holds what ParseTopic promises. Control characters and spaces are refused because topics end up in logs and terminals;
// the asterisk is kept free, so that a pattern can never be mistaken for a topic.
func (t Topic) check() error {
	switch {
	case t == "":
		return fmt.Errorf("%w: it is empty", ErrTopic)
	case len(t) > MaxTopicLength:
		return fmt.Errorf("%w: %w: %d bytes of at most %d", ErrTopic, ErrTopicTooLong, len(t), MaxTopicLength)
	case !utf8.ValidString(string(t)):
		return fmt.Errorf("%w: it is not UTF-8", ErrTopic)
	case t[0] == '/' || t[len(t)-1] == '/' || strings.Contains(string(t), "//"):
		return fmt.Errorf("%w: it has an empty segment", ErrTopic)
	}
	for _, r := range t {
		if r == '*' || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return fmt.Errorf("%w: it holds the character %U", ErrTopic, r)
		}
	}
	return nil
}
