package ui

import (
	"encoding/json"
	"testing"
)

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// parse runs the parser in the browser over a stream cut at every place given, and answers what it told.
const parse = `async (chunks) => {
  const { Parser } = await import("/static/lib/realtime/parser.js");
  const told = [];
  const parser = new Parser({
    event: ({ type, data }) => told.push(type + ":" + data),
    id: (id) => told.at(-1) !== "#" + id && told.push("#" + id),
    retry: (ms) => told.push("retry " + ms),
    oversize: () => told.push("oversize"),
  });
  for (const chunk of chunks) parser.push(chunk);
  return told.filter((line) => line !== "#");
}`

// TestParser goes through the rules of the event stream format, each stream whole and byte by byte.
func TestParser(t *testing.T) {
	t.Parallel()
	tb := newBrowser(t).open(newAppliance(t), "/")
	for _, tc := range []struct {
		name, stream string
		want         []string
	}{
		{"one event", "data: a\n\n", []string{"message:a"}},
		{"named, with id", "id: 7\nevent: hello\ndata: {}\n\n", []string{"#7", "hello:{}"}},
		{"lines joined", "data: a\ndata:b\ndata:  c\n\n", []string{"message:a\nb\n c"}},
		{"CR", "data: a\rdata: b\r\r", []string{"message:a\nb"}},
		{"CRLF", "data: a\r\ndata: b\r\n\r\n", []string{"message:a\nb"}},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []string{"message:a\nb\nc"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"message:a"}},
		{"a mark inside is text", "data: \xef\xbb\xbfa\n\n", []string{"message:\ufeffa"}},
		{"empty data", "data\n\ndata:\ndata\n\n", []string{"message:", "message:\n"}},
		{"a name alone is no event", "event: x\n\ndata: a\n\n", []string{"message:a"}},
		{"comments", ": heartbeat\n\n:\ndata: a\n: b\n\n", []string{"message:a"}},
		{"an id without an event", ": heartbeat\nid: e-9\n\n", []string{"#e-9"}},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\n", []string{"#1", "message:a", "#1", "message:b"}},
		{"id with NUL is ignored", "id: 1\n\nid: 2\x003\ndata: a\n\n", []string{"#1", "message:a"}},
		{"retry", "retry: 250\nretry: 2.5\nretry: -1\nretry:\n\n", []string{"retry 250"}},
		{"unknown fields", "foo: bar\ndata: a\nDATA: b\n data: c\n\n", []string{"message:a"}},
		{"one space only", "data:  a\nevent:  x\n\n", []string{" x: a"}},
		{"colons in the value", "data: a:b:c\n\n", []string{"message:a:b:c"}},
		{"cut off at the end", "data: a\n\ndata: b\n", []string{"message:a"}},
		{"letters of several bytes", "data: é漢🙂\n\n", []string{"message:é漢🙂"}},
		{"no UTF-8", "data: a\xffb\n\n", []string{"message:a\ufffdb"}},
	} {
		bytes, _ := json.Marshal([]byte(tc.stream))
		whole := `[Uint8Array.from(atob(` + string(bytes) + `), (c) => c.charCodeAt(0))]`
		for how, chunks := range map[string]string{"whole": whole, "byte by byte": `Array.from(` + whole + `[0], (b) => Uint8Array.of(b))`} {
			got := eval[[]string](tb, `(`+parse+`)(`+chunks+`)`)
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(tc.want)
			if string(a) != string(b) {
				t.Errorf("%s, %s: %s, want %s", tc.name, how, a, b)
			}
		}
	}
	huge := eval[[]string](tb, `(`+parse+`)(Array.from({length: 40}, (_, i) => new TextEncoder().encode((i ? "" : "data: ") + "x".repeat(65536) + (i % 2 ? "\n" : ""))).concat(new TextEncoder().encode("\n\ndata: after\n\n")))`)
	if a, _ := json.Marshal(huge); string(a) != `["oversize","message:after"]` {
		t.Errorf("an event that is too large: %s", a)
	}
}

// TestWaiting: waits are bounded, spread from nothing to a bound that doubles, begin anew after a good connection, and obey the server.
func TestWaiting(t *testing.T) {
	t.Parallel()
	tb := newBrowser(t).open(newAppliance(t), "/")
	got := eval[map[string][]float64](tb, `(async () => {
	  const { Backoff, retryAfter } = await import("/static/lib/realtime/backoff.js");
	  const most = new Backoff(() => 1), least = new Backoff(() => 0), asked = new Backoff(() => 0);
	  const bounds = Array.from({length: 9}, () => most.next());
	  most.reset();
	  asked.retry(1500);
	  const at = Date.parse("2026-11-29T12:00:00Z");
	  return {
	    bounds, again: [most.next()], least: [least.next(), least.next()], asked: [asked.next(), asked.next(4000), asked.next()],
	    absurd: [new Backoff(() => 0).next(1e12)],
	    header: [retryAfter("7"), retryAfter("Sun, 29 Nov 2026 12:00:09 GMT", at), retryAfter("Sun, 29 Nov 2026 11:00:00 GMT", at), retryAfter("soon"), retryAfter(null)],
	  };
	})()`)
	want := map[string][]float64{
		"bounds": {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000}, "again": {500}, "least": {0, 0}, "asked": {1500, 4000, 1500},
		"absurd": {600000}, "header": {7000, 9000, 0, 0, 0},
	}
	for name, values := range want {
		a, _ := json.Marshal(got[name])
		b, _ := json.Marshal(values)
		if string(a) != string(b) {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
	}
}

// TestFormats: figures and times as people read them.
func TestFormats(t *testing.T) {
	t.Parallel()
	tb := newBrowser(t).open(newAppliance(t), "/")
	got := eval[[]string](tb, `(async () => {
	  const f = await import("/static/lib/format.js");
	  const { Throughput, STEP } = await import("/static/lib/throughput.js");
	  const now = Date.parse("2026-11-29T17:04:10.123Z");
	  const flow = new Throughput();
	  const start = 1000 * STEP;
	  flow.add({ at: start, attempts: 100, dispatched: 90 });
	  flow.add({ at: start + 2 * STEP, attempts: 130, dispatched: 110 });
	  const before = flow.recent(start + 2 * STEP - 1, 2);
	  flow.add({ at: start + 3 * STEP, attempts: 5, dispatched: 5 }); // a restart
	  const [times, failed, dispatched] = flow.series(start + 3 * STEP - 1);
	  return [f.count(1234567), f.count(null), f.share(1), f.share(0.99999), f.share(0.9871), f.share(0), f.share(null), f.span(0.4), f.span(42.4), f.span(1920),
	    f.span(59_999), f.span(754_200), f.span(7_200_000), f.span(90_061_000), f.ago(now - 61_000, now), f.ago(now + 42_500, now), f.ago(now - 300, now),
	    f.exact(now), f.rate(0.04), f.rate(12.6), f.rate(1234.5), f.plural(1, "attempt"), f.plural(2, "delivery", "deliveries"), f.size(1 << 20),
	    [before.dispatched, before.failed].join(" "), [dispatched.at(-2), failed.at(-2), dispatched.at(-1)].join(" ")];
	})()`)
	want := []string{"1,234,567", "–", "100 %", "99.99 %", "98.7 %", "0 %", "–", "< 1 ms", "42 ms", "1.9 s",
		"59 s", "12 min 34 s", "2 h", "1 d 1 h", "1 min ago", "in 42 s", "just now",
		"2026-11-29 17:04:10.123 UTC", "0.0", "13", "1,235", "1 attempt", "2 deliveries", "1.0 MiB",
		"2 1", "2 1 "}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("%d: %q, want %q", i, got[i], want[i])
		}
	}
}
