package realtime

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

// parsed is what a stream comes to.
type parsed struct {
	events []streamEvent
	lastID string
	retry  time.Duration
	large  int // events skipped for their size
	err    error
}

func parseAll(r io.Reader, limit int, lastID string) parsed {
	p := newParser(r, limit, lastID)
	var out parsed
	for {
		e, err := p.next()
		switch {
		case err == nil:
			out.events = append(out.events, e)
		case errors.Is(err, errOversize):
			out.large++
		default:
			out.lastID, out.retry, out.err = p.lastID, p.retry, err
			return out
		}
	}
}

func msg(data, id string) streamEvent { return streamEvent{name: "message", data: data, id: id} }

func TestParser(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, in string
		events   []streamEvent
		lastID   string
		retry    time.Duration
		large    int
	}{
		{rule: "one event", in: "data: x\n\n", events: []streamEvent{msg("x", "")}},
		{rule: "the standard's stock ticker", in: "data: YHOO\ndata: +2\ndata: 10\n\n", events: []streamEvent{msg("YHOO\n+2\n10", "")}},
		{rule: "the standard's four blocks", in: ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
			events: []streamEvent{msg("first event", "1"), msg("second event", "")}},
		{rule: "the standard's empty data", in: "data\n\ndata\ndata\n\ndata:", events: []streamEvent{msg("", ""), msg("\n", "")}},
		{rule: "the standard's optional space", in: "data:test\n\ndata: test\n\n", events: []streamEvent{msg("test", ""), msg("test", "")}},
		{rule: "only one space is taken away", in: "data:  x\n\n", events: []streamEvent{msg(" x", "")}},
		{rule: "a tab is no space", in: "data:\tx\n\n", events: []streamEvent{msg("\tx", "")}},

		{rule: "byte order mark at the start", in: "\ufeffdata: x\n\n", events: []streamEvent{msg("x", "")}},
		{rule: "only one byte order mark", in: "\ufeff\ufeffdata: x\n\n"},
		{rule: "byte order mark later is text", in: "data: 1\n\n\ufeffdata: 2\n\n", events: []streamEvent{msg("1", "")}},
		{rule: "byte order mark alone on the first line", in: "\ufeff\ndata: x\n\n", events: []streamEvent{msg("x", "")}},
		{rule: "part of a byte order mark", in: "\xef\xbb\ndata: x\n\n", events: []streamEvent{msg("x", "")}},

		{rule: "CR ends lines", in: "data: 1\rdata: 2\r\r", events: []streamEvent{msg("1\n2", "")}},
		{rule: "CR LF ends lines", in: "data: 1\r\ndata: 2\r\n\r\n", events: []streamEvent{msg("1\n2", "")}},
		{rule: "mixed line ends", in: "data: 1\r\ndata: 2\rdata: 3\n\r\ndata: 4\n\ndata: 5\r\r",
			events: []streamEvent{msg("1\n2\n3", ""), msg("4", ""), msg("5", "")}},
		{rule: "LF CR is two ends", in: "data: 1\n\rdata: 2\n\n", events: []streamEvent{msg("1", ""), msg("2", "")}},
		{rule: "CR CR LF is two ends", in: "data: 1\r\r\ndata: 2\n\n", events: []streamEvent{msg("1", ""), msg("2", "")}},
		{rule: "line separators of Unicode are text", in: "data: a\u2028b\u0085c\n\n", events: []streamEvent{msg("a\u2028b\u0085c", "")}},

		{rule: "comments are ignored", in: ": one\ndata: x\n:two\n:\n\n: three\n\n", events: []streamEvent{msg("x", "")}},
		{rule: "data that begins with a colon", in: "data: :x\n\n", events: []streamEvent{msg(":x", "")}},
		{rule: "data with colons", in: "data: a:b: c\n\n", events: []streamEvent{msg("a:b: c", "")}},
		{rule: "field without colon", in: "data\n\n", events: []streamEvent{msg("", "")}},
		{rule: "empty data", in: "data:\n\n", events: []streamEvent{msg("", "")}},
		{rule: "data that ends with an empty line", in: "data: x\ndata:\n\n", events: []streamEvent{msg("x\n", "")}},
		{rule: "unknown fields are ignored", in: "foo: 1\nDATA: 2\n data: 3\ndata : 4\ndata: 5\n\n", events: []streamEvent{msg("5", "")}},
		{rule: "no data, no event", in: "event: a\nid: 1\n\ndata: x\n\n", events: []streamEvent{msg("x", "1")}, lastID: "1"},

		{rule: "event name", in: "event: a\ndata: x\n\ndata: y\n\n", events: []streamEvent{{"a", "x", ""}, msg("y", "")}},
		{rule: "the last event name counts", in: "event: a\nevent: b\ndata: x\n\n", events: []streamEvent{{"b", "x", ""}}},
		{rule: "an empty event name is message", in: "event: a\nevent\ndata: x\n\n", events: []streamEvent{msg("x", "")}},
		{rule: "order of fields does not matter", in: "data: x\nid: 1\nevent: a\n\n", events: []streamEvent{{"a", "x", "1"}}, lastID: "1"},

		{rule: "id stays until the next", in: "id: 1\ndata: x\n\ndata: y\n\n", events: []streamEvent{msg("x", "1"), msg("y", "1")}, lastID: "1"},
		{rule: "an empty id resets it", in: "id: 1\ndata: x\n\nid\ndata: y\n\n", events: []streamEvent{msg("x", "1"), msg("y", "")}},
		{rule: "id with NUL is ignored", in: "id: 1\ndata: x\n\nid: 2\x003\ndata: y\n\n", events: []streamEvent{msg("x", "1"), msg("y", "1")}, lastID: "1"},
		{rule: "id without data", in: "id: 1\n\n", lastID: "1"},
		{rule: "id counts at the blank line only", in: "id: 1\n\nid: 2\ndata: x\n", lastID: "1"},
		{rule: "id in a heartbeat", in: ": heartbeat\nid: e-5\n\n", lastID: "e-5"},

		{rule: "retry", in: "retry: 1500\n\n", retry: 1500 * time.Millisecond},
		{rule: "retry needs no blank line", in: "retry: 5\n", retry: 5 * time.Millisecond},
		{rule: "retry with other than digits", in: "retry: 7\nretry: 1x\nretry: -1\nretry: +1\nretry: 1.5\nretry:  9\nretry: 1e3\nretry: ١\n\n", retry: 7 * time.Millisecond},
		{rule: "empty retry", in: "retry: 7\nretry\nretry:\n\n", retry: 7 * time.Millisecond},
		{rule: "absurd retry", in: "retry: 99999999999999999999999999\n\n", retry: 24 * time.Hour},

		{rule: "truncated last event is dropped", in: "data: x\n\ndata: y\n", events: []streamEvent{msg("x", "")}},
		{rule: "truncated last line is dropped", in: "data: x\n\ndata: y", events: []streamEvent{msg("x", "")}},
		{rule: "nothing", in: ""},
		{rule: "blank lines only", in: "\n\r\n\r\n\n\r"},

		{rule: "characters of several bytes", in: "data: żółw 🐢\n\n", events: []streamEvent{msg("żółw 🐢", "")}},
		{rule: "bytes that are not UTF-8", in: "data: a\xffb\xe2\x82c\xf0\x9f\x90\xc0\x80\xed\xa0\x80\n\n",
			events: []streamEvent{msg("a\ufffdb\ufffdc\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd", "")}},

		{rule: "line that is too long", in: "id: 1\ndata: " + strings.Repeat("x", 200) + "\n\ndata: y\n\n",
			events: []streamEvent{msg("y", "1")}, lastID: "1", large: 1},
		{rule: "event that is too large", in: strings.Repeat("data: xxxxxxxxx\n", 20) + "id: 2\n\ndata: y\n\n",
			events: []streamEvent{msg("y", "2")}, lastID: "2", large: 1},
		{rule: "event of just the bound", in: "data: " + strings.Repeat("x", 94) + "\n\n", events: []streamEvent{msg(strings.Repeat("x", 94), "")}},
		{rule: "comment that is too long spoils its event only", in: ":" + strings.Repeat("x", 200) + "\ndata: a\n\ndata: b\n\n",
			events: []streamEvent{msg("b", "")}, large: 1},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole":        strings.NewReader(tt.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				got := parseAll(r, 100, "")
				want := parsed{tt.events, tt.lastID, tt.retry, tt.large, io.EOF}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
				}
			}
		})
	}
}

// An event is dispatched at the CR of its blank line: its LF may be long in coming.
func TestParserDoesNotWaitForLF(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer r.Close()
	go func() { _, _ = w.Write([]byte("data: x\r\n\r")) }()
	p := newParser(r, 100, "")
	if e, err := p.next(); err != nil || e.data != "x" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestParserKeepsTheIDOfTheConnectionBefore(t *testing.T) {
	t.Parallel()
	got := parseAll(strings.NewReader("data: x\n\n"), 100, "e-7")
	if got.lastID != "e-7" || got.events[0].id != "e-7" {
		t.Errorf("got %+v", got)
	}
}

func TestParserPassesOnErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got := parseAll(io.MultiReader(strings.NewReader("data: x\n\ndata: y"), iotest.ErrReader(broken)), 100, "")
	if !errors.Is(got.err, broken) || len(got.events) != 1 {
		t.Errorf("got %+v", got)
	}
}

func FuzzParser(f *testing.F) {
	for _, s := range []string{
		"data: x\n\n", "\ufeffid: 1\r\ndata\r\rretry: 5\n\n", "event: a\ndata: :\n\n: c\n", "id: \x00\n\ndata: \xff\xe2\x82\n\n", "\r\n\r\r\n",
	} {
		f.Add([]byte(s), 64)
	}
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit < 4 || limit > 1<<16 {
			limit = 64
		}
		whole := parseAll(strings.NewReader(string(in)), limit, "")
		pieces := parseAll(iotest.OneByteReader(strings.NewReader(string(in))), limit, "")
		if !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("how the bytes arrive matters:\n%+v\n%+v", whole, pieces)
		}
		if !errors.Is(whole.err, io.EOF) {
			t.Fatalf("ended with %v", whole.err)
		}
		// What was read, written by the rules, reads the same.
		var again strings.Builder
		for _, e := range whole.events {
			if len(e.data) > 3*limit || !utf8.ValidString(e.data+e.name+e.id) || strings.ContainsAny(e.data, "\r") ||
				strings.ContainsAny(e.name+e.id, "\r\n") || strings.Contains(e.id, "\x00") || e.name == "" {
				t.Fatalf("event %+q", e)
			}
			fmt.Fprintf(&again, "event: %s\nid: %s\n", e.name, e.id)
			for line := range strings.SplitSeq(e.data, "\n") {
				fmt.Fprintf(&again, "data: %s\r\n", line)
			}
			again.WriteString("\r")
		}
		second := parseAll(strings.NewReader(again.String()), 1<<20, "")
		if !reflect.DeepEqual(second.events, whole.events) {
			t.Fatalf("written and read again:\n%+q\n%+q", whole.events, second.events)
		}
	})
}
