package webhook

import (
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var quiet = log.New(io.Discard, "", 0)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const limit = 24 * time.Hour
	for _, test := range []struct {
		value, date string
		wait        time.Duration
		ok          bool
	}{
		{value: "0", ok: true}, {value: "1", wait: time.Second, ok: true}, {value: " 120\t", wait: 2 * time.Minute, ok: true}, {value: "007", wait: 7 * time.Second, ok: true},
		{value: "86400", wait: limit, ok: true}, {value: "86401", wait: limit, ok: true}, {value: "9223372036854775808", wait: limit, ok: true},
		{value: strings.Repeat("9", 64), wait: limit, ok: true}, {value: strings.Repeat("9", 65)},
		{value: ""}, {value: " "}, {value: "-1"}, {value: "+1"}, {value: "1.5"}, {value: "1s"}, {value: "1e3"}, {value: "soon"}, {value: "١٢"}, {value: "1, 2"}, {value: "\x00"},
		{value: "Wed, 01 Jul 2026 12:00:30 GMT", wait: 30 * time.Second, ok: true},
		{value: "Wednesday, 01-Jul-26 12:00:30 GMT", wait: 30 * time.Second, ok: true},
		{value: "Wed Jul  1 12:00:30 2026", wait: 30 * time.Second, ok: true},
		{value: "Wed, 01 Jul 2026 11:00:00 GMT", ok: true}, {value: "Thu, 01 Jan 9999 00:00:00 GMT", wait: limit, ok: true}, {value: "Mon, 01 Jan 0001 00:00:00 GMT", ok: true},
		{value: "2026-07-01T12:00:30Z"}, {value: "Wed, 32 Jul 2026 12:00:30 GMT"},
		// A target an hour behind asks for 30 s of its own time.
		{value: "Wed, 01 Jul 2026 11:00:30 GMT", date: "Wed, 01 Jul 2026 11:00:00 GMT", wait: 30 * time.Second, ok: true},
		{value: "Wed, 01 Jul 2026 12:00:30 GMT", date: "junk", wait: 30 * time.Second, ok: true},
	} {
		header := http.Header{"Retry-After": {test.value}}
		if test.date != "" {
			header.Set("Date", test.date)
		}
		if wait, ok := retryAfter(header, now, limit); wait != test.wait || ok != test.ok {
			t.Errorf("%q: %s, %v; want %s, %v", test.value, wait, ok, test.wait, test.ok)
		}
	}
	if _, ok := retryAfter(http.Header{}, now, limit); ok {
		t.Error("no header was a wish")
	}
	if _, ok := retryAfter(http.Header{"Retry-After": {"1", "2"}}, now, limit); ok {
		t.Error("two headers were a wish")
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "99999999999999999999", "-1", "Wed, 01 Jul 2026 12:00:30 GMT", "Wed Jul  1 12:00:30 2026", "soon"} {
		f.Add(seed, "Wed, 01 Jul 2026 12:00:00 GMT", int64(1_782_907_200), int64(time.Hour))
	}
	f.Fuzz(func(t *testing.T, value, date string, seconds, limit int64) {
		if limit < 0 {
			return
		}
		wait, ok := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(seconds, 0), time.Duration(limit))
		if wait < 0 || wait > time.Duration(limit) || !ok && wait != 0 {
			t.Fatalf("%q: %s, %v with a limit of %s", value, wait, ok, time.Duration(limit))
		}
	})
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "ok": "ok", " a\r\n\tb ": "a  b", "\x1b[31mred\x07": "[31mred", "a\u202eb\u200bc\u2028d\ufeff": "abcd", "bad\xff\xfe": "bad\ufffd\ufffd",
		"0123456789abcdefg": "0123456789abcdef", "0123456789abcde\u00e9": "0123456789abcde", "\xff\xff\xff\xff\xff\xff\xff": strings.Repeat("\ufffd", 5), "\x7f\u0085x": "x",
		"0123456789abcde\xff": "0123456789abcde",
	} {
		if got := plain(in, 16); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x00\xff\u202e", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 {
			return
		}
		got := plain(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
