// Package paging is how long lists are read: in pages, by key. A cursor says where the next page begins; it is opaque to callers, and
// names a place rather than a count of rows, so that a page costs the same wherever it is and shows nothing twice when rows come or go.
package paging

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/posthorn/posthorn/app/mediator"
)

const (
	// DefaultLimit is how many entries a page has when the caller does not say.
	DefaultLimit = 50
	// MaxLimit is how many it may have.
	MaxLimit = 200
)

// Limit reads the limit of a page; 0 stands for the default.
func Limit(limit int) (int, error) {
	if limit == 0 {
		return DefaultLimit, nil
	}
	if limit < 1 || limit > MaxLimit {
		return 0, mediator.Violations{{Path: "limit", Message: "must be a whole number from 1 to " + strconv.Itoa(MaxLimit)}}.
			Refusal("bad-limit", "The limit of the page is out of range.", "Leave it out for "+strconv.Itoa(DefaultLimit)+".")
	}
	return limit, nil
}

// Cursor writes a place. list tells the places of one kind of list from those of another.
func Cursor(list, place string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + ":" + place))
}

// Place reads what Cursor wrote for the same kind of list; "" is the beginning.
func Place(list, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	place, ours := strings.CutPrefix(string(text), list+":")
	if err != nil || !ours || place == "" {
		return "", mediator.Violations{{Path: "cursor", Message: "must be the next of an earlier page of this list"}}.
			Refusal("bad-cursor", "The cursor is not one of this list.", "Leave it out to begin at the first page; keep the filters between pages.")
	}
	return place, nil
}
