package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads how long an answer asks to wait, from 0 to limit. Both forms are read, seconds and a date; anything else is junk and
// no wish at all. A date counts from the answer's own Date header where it has one, so that neither clock need be right.
func retryAfter(header http.Header, now time.Time, limit time.Duration) (wait time.Duration, ok bool) {
	values := header.Values("Retry-After")
	if len(values) != 1 {
		return 0, false
	}
	text := strings.Trim(values[0], " \t")
	if text == "" || len(text) > 64 {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(limit/time.Second) {
			return limit, true // an overflow is a long wait, not junk
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if answered, err := http.ParseTime(header.Get("Date")); err == nil {
		now = answered
	}
	return min(max(date.Sub(now), 0), limit), true
}
