package sink_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn/app/sink"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	other  = "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
)

func open(t *testing.T, config sink.Config) *sink.Sink {
	t.Helper()
	s, err := sink.New(config)
	if err != nil {
		t.Fatalf("new sink: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close sink: %v", err)
		}
	})
	return s
}

// delivery is a signed request.
type delivery struct {
	path, id, body, secret string
	attempt                int
	fence                  int64
	at                     time.Time
}

func (d delivery) request(t *testing.T, base string) *http.Request {
	t.Helper()
	if d.at.IsZero() {
		d.at = time.Now()
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/"+d.path, strings.NewReader(d.body))
	if err != nil {
		t.Fatalf("new request: %v", err)
	}
	r.Header.Set("webhook-id", d.id)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(d.at.Unix(), 10))
	r.Header.Set("posthorn-type", "order-placed")
	r.Header.Set("posthorn-schema-version", "1")
	r.Header.Set("posthorn-attempt", strconv.Itoa(d.attempt))
	r.Header.Set("posthorn-fence", strconv.FormatInt(d.fence, 10))
	if d.secret != "" {
		signer, err := standardwebhooks.NewWebhook(d.secret)
		if err != nil {
			t.Fatalf("new signer: %v", err)
		}
		signature, err := signer.Sign(d.id, d.at, []byte(d.body))
		if err != nil {
			t.Fatalf("sign: %v", err)
		}
		r.Header.Set("webhook-signature", signature)
	}
	return r
}

// post sends a delivery to a sink without a network.
func post(t *testing.T, s *sink.Sink, d delivery) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, d.request(t, "http://sink.test"))
	return w
}

func control(t *testing.T, s *sink.Sink, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.ServeHTTP(w, r)
	return w
}

func TestVerifies(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t, sink.Config{Secrets: []string{other, secret}, Now: func() time.Time { return now }})
	for name, test := range map[string]struct {
		delivery delivery
		change   func(*http.Request)
		status   int
	}{
		"signed":         {delivery: delivery{id: "a", body: "{}", secret: secret}, status: 200},
		"first secret":   {delivery: delivery{id: "b", body: "{}", secret: other}, status: 200},
		"unsigned":       {delivery: delivery{id: "c", body: "{}"}, status: 401},
		"foreign secret": {delivery: delivery{id: "d", body: "{}", secret: strings.Replace(secret, "Mf", "Xf", 1)}, status: 401},
		"too old":        {delivery: delivery{id: "e", body: "{}", secret: secret, at: now.Add(-301 * time.Second)}, status: 401},
		"too new":        {delivery: delivery{id: "f", body: "{}", secret: secret, at: now.Add(301 * time.Second)}, status: 401},
		"old enough":     {delivery: delivery{id: "g", body: "{}", secret: secret, at: now.Add(-299 * time.Second)}, status: 200},
		"time replaced":  {delivery: delivery{id: "h", body: "{}", secret: secret}, change: func(r *http.Request) { r.Header.Set("webhook-timestamp", "1") }, status: 401},
		"no time":        {delivery: delivery{id: "i", body: "{}", secret: secret}, change: func(r *http.Request) { r.Header.Del("webhook-timestamp") }, status: 401},
		"id replaced":    {delivery: delivery{id: "j", body: "{}", secret: secret}, change: func(r *http.Request) { r.Header.Set("webhook-id", "k") }, status: 401},
		"body replaced":  {delivery: delivery{id: "l", body: "{}", secret: secret}, change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) }, status: 401},
		"several, one fits": {delivery: delivery{id: "m", body: "{}", secret: secret}, change: func(r *http.Request) {
			r.Header.Set("webhook-signature", "v1a,xx v1,AAAA "+r.Header.Get("webhook-signature"))
		}, status: 200},
	} {
		r := test.delivery.request(t, "http://sink.test")
		if test.change != nil {
			test.change(r)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, test.status, w.Body)
		}
	}
	if stats := s.Stats(); stats.Verified != 4 || stats.Handled != 4 || stats.Refused != 8 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestSuppressesRepeats(t *testing.T) {
	t.Parallel()
	var entries []sink.Entry
	s := open(t, sink.Config{Secrets: []string{secret}, Observe: func(e sink.Entry) { entries = append(entries, e) }})
	first := delivery{path: "one", id: "m1", body: `{"n":1}`, secret: secret, attempt: 1, fence: 7}
	post(t, s, first)
	repeat := first
	repeat.attempt, repeat.fence = 2, 9
	if w := post(t, s, repeat); w.Code != 200 || !strings.Contains(w.Body.String(), `"repeated":true`) {
		t.Errorf("repeat answered %d %s", w.Code, w.Body)
	}
	late := first
	late.fence = 8
	post(t, s, late)
	changed := repeat
	changed.body, changed.fence = `{"n": 1}`, 10
	post(t, s, changed)
	elsewhere := first
	elsewhere.path = "two"
	post(t, s, elsewhere)

	want := []struct{ handled, repeated, stale, changed bool }{
		{true, false, false, false}, {false, true, false, false}, {false, true, true, false}, {false, true, false, true}, {true, false, false, false},
	}
	if len(entries) != len(want) {
		t.Fatalf("%d entries, want %d", len(entries), len(want))
	}
	for i, e := range entries {
		if e.Handled != want[i].handled || e.Repeated != want[i].repeated || e.Stale != want[i].stale || e.Changed != want[i].changed {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if stats := s.Stats(); stats.Handled != 2 || stats.Repeated != 3 || stats.Stale != 1 || stats.Changed != 1 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{Remember: 2})
	for _, id := range []string{"a", "b", "b", "c", "c", "b", "a", "c"} {
		post(t, s, delivery{id: id})
	}
	// a, b, c are new; b and c repeat; a, forgotten, is new and makes the sink forget b.
	if stats := s.Stats(); stats.Handled != 4 || stats.Repeated != 4 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestJournalOutlivesTheSink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	d := delivery{id: "m1", body: "payload", secret: secret, attempt: 1, fence: 3}
	first, err := sink.New(sink.Config{Secrets: []string{secret}, Journal: path})
	if err != nil {
		t.Fatalf("new sink: %v", err)
	}
	post(t, first, d)
	post(t, first, delivery{id: "m2", body: "x"})
	first.Close()

	// A crash tore the last line.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("open journal: %v", err)
	}
	if _, err := file.WriteString(`{"time":"2026-0`); err != nil {
		t.Fatalf("tear journal: %v", err)
	}
	file.Close()

	second := open(t, sink.Config{Secrets: []string{secret}, Journal: path})
	post(t, second, d)
	if stats := second.Stats(); stats.Repeated != 1 || stats.Handled != 0 {
		t.Errorf("after a restart: %+v", stats)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read journal: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 4 || lines[2] != `{"time":"2026-0` {
		t.Fatalf("journal:\n%s", text)
	}
	var entry sink.Entry
	if err := json.Unmarshal([]byte(lines[0]), &entry); err != nil {
		t.Fatalf("read entry: %v", err)
	}
	if entry.ID != "m1" || entry.Attempt != 1 || entry.Fence != 3 || !entry.Verified || !entry.Handled || entry.Status != 200 ||
		entry.SHA256 != "239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5" {
		t.Errorf("entry: %s", lines[0])
	}
}

func TestNothingUnjournaledIsAcknowledged(t *testing.T) {
	t.Parallel()
	s, err := sink.New(sink.Config{Journal: filepath.Join(t.TempDir(), "journal")})
	if err != nil {
		t.Fatalf("new sink: %v", err)
	}
	s.Close() // its next write fails
	if w := post(t, s, delivery{id: "a"}); w.Code != 500 {
		t.Errorf("answered %d without a journal", w.Code)
	}
	if stats := s.Stats(); stats.Handled != 0 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestMisbehavesByStatus(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{Misbehaviour: sink.Misbehaviour{Status: 503, RetryAfter: "7", Times: 2}})
	for i, status := range []int{503, 503, 200, 200} {
		w := post(t, s, delivery{id: "a", attempt: i + 1})
		if w.Code != status {
			t.Errorf("attempt %d: %d, want %d", i+1, w.Code, status)
		}
		if status == 503 && w.Header().Get("Retry-After") != "7" {
			t.Error("no Retry-After")
		}
	}
	if stats := s.Stats(); stats.Handled != 1 || stats.NotHandled != 2 || stats.Repeated != 1 || stats.Statuses["503"] != 2 {
		t.Errorf("stats: %+v", stats)
	}
	if err := s.Misbehave(sink.Misbehaviour{Status: 302}); err != nil {
		t.Fatalf("misbehave: %v", err)
	}
	if w := post(t, s, delivery{path: "hook", id: "b"}); w.Code != 302 || w.Header().Get("Location") != "/hook" {
		t.Errorf("redirect: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	run := func() (string, int64) {
		var hits strings.Builder
		s := open(t, sink.Config{Seed: 42, Misbehaviour: sink.Misbehaviour{Status: 500, Rate: 0.3}})
		for i := range 1000 {
			hits.WriteString(strconv.Itoa(post(t, s, delivery{id: strconv.Itoa(i)}).Code))
		}
		return hits.String(), s.Stats().Misbehaved
	}
	first, hits := run()
	if hits < 200 || hits > 400 {
		t.Errorf("%d of 1000 at a rate of 0.3", hits)
	}
	if second, _ := run(); second != first {
		t.Error("the same seed hits other requests")
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{Misbehaviour: sink.Misbehaviour{Duplicates: true}})
	if w := post(t, s, delivery{id: "a"}); w.Code != 500 {
		t.Errorf("first: %d", w.Code)
	}
	if w := post(t, s, delivery{id: "a"}); w.Code != 200 {
		t.Errorf("repeat: %d", w.Code)
	}
	if stats := s.Stats(); stats.Handled != 1 || stats.Repeated != 1 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := sink.New(sink.Config{Misbehaviour: sink.Misbehaviour{Delay: 3 * time.Second}})
		if err != nil {
			t.Fatalf("new sink: %v", err)
		}
		start := time.Now()
		if w := post(t, s, delivery{id: "a"}); w.Code != 200 || time.Since(start) != 3*time.Second {
			t.Errorf("%d after %s", w.Code, time.Since(start))
		}
	})
}

func TestFaultsOnTheWire(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{})
	server := httptest.NewServer(s)
	defer server.Close()
	client := server.Client()

	send := func(m sink.Misbehaviour) (status int, body []byte, sendErr, bodyErr error) {
		t.Helper()
		if err := s.Misbehave(m); err != nil {
			t.Fatalf("misbehave: %v", err)
		}
		response, err := client.Do(delivery{id: "a", body: "x"}.request(t, server.URL))
		if err != nil {
			return 0, nil, err, nil
		}
		defer response.Body.Close()
		body, bodyErr = io.ReadAll(response.Body)
		return response.StatusCode, body, nil, bodyErr
	}
	if _, _, err, _ := send(sink.Misbehaviour{Reset: sink.ResetBefore}); err == nil {
		t.Error("reset before the status: an answer came")
	}
	if status, _, err, bodyErr := send(sink.Misbehaviour{Reset: sink.ResetAfter}); err != nil || status != 200 || bodyErr == nil {
		t.Errorf("reset after the status: %d, %v, %v", status, err, bodyErr)
	}
	if status, body, _, err := send(sink.Misbehaviour{BodyBytes: 3 << 20}); status != 200 || len(body) != 3<<20 || err != nil {
		t.Errorf("huge body: %d with %d bytes, %v", status, len(body), err)
	}
	if status, body, _, err := send(sink.Misbehaviour{Drip: time.Millisecond, Status: 500}); status != 500 || !bytes.Equal(body, bytes.Repeat([]byte("."), 64)) || err != nil {
		t.Errorf("drip: %d with %q, %v", status, body, err)
	}
	if status, _, _, err := send(sink.Misbehaviour{Status: 204}); status != 204 || err != nil {
		t.Errorf("no content: %d, %v", status, err)
	}
	client.CloseIdleConnections()
}

func TestControl(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{})
	if w := control(t, s, "POST", "/_sink/misbehave", `{"status":500,"delay":"1ms","times":1}`); w.Code != 200 {
		t.Fatalf("misbehave: %d %s", w.Code, w.Body)
	}
	if w := control(t, s, "GET", "/_sink/misbehave", ""); strings.TrimSpace(w.Body.String()) != `{"times":1,"status":500,"delay":"1ms"}` {
		t.Errorf("in force: %s", w.Body)
	}
	if w := post(t, s, delivery{id: "a"}); w.Code != 500 {
		t.Errorf("answered %d", w.Code)
	}
	if w := control(t, s, "GET", "/_sink/stats", ""); !strings.Contains(w.Body.String(), `"not_handled":1`) {
		t.Errorf("stats: %s", w.Body)
	}
	for _, bad := range []string{
		``, `[]`, `{"stauts":500}`, `{"status":99}`, `{"status":600}`, `{"rate":2}`, `{"rate":-1}`, `{"delay":"1"}`, `{"delay":"11m"}`, `{"delay":5}`, `{"drip":"-1s"}`,
		`{"body_bytes":-1}`, `{"body_bytes":9999999999}`, `{"reset":"now"}`, `{"retry_after":"1\r\nX: y"}`, `{"duplicates":true,"status":200}`, `{"times":-1}`, `{} {}`,
	} {
		if w := control(t, s, "POST", "/_sink/misbehave", bad); w.Code != 400 {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	if w := control(t, s, "POST", "/_sink/misbehave", `{}`, "Content-Type", "text/plain"); w.Code != 415 {
		t.Errorf("text/plain: %d", w.Code)
	}
	if w := control(t, s, "POST", "/_sink/misbehave", `{}`, "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("cross-site: %d", w.Code)
	}
	if w := control(t, s, "POST", "/_sink/nothing", `{}`); w.Code != 404 {
		t.Errorf("unknown address: %d", w.Code)
	}
	if w := control(t, s, "GET", "/hook", ""); w.Code != 405 {
		t.Errorf("GET of a hook: %d", w.Code)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{MaxBody: 4})
	if w := post(t, s, delivery{id: "a", body: "12345"}); w.Code != 413 {
		t.Errorf("5 bytes: %d", w.Code)
	}
	if w := post(t, s, delivery{id: "a", body: "1234"}); w.Code != 200 {
		t.Errorf("4 bytes: %d", w.Code)
	}
}

func TestPrints(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 5e6, time.UTC)
	var out bytes.Buffer
	s := open(t, sink.Config{Out: &out, Now: func() time.Time { return at }})
	post(t, s, delivery{id: "m1", body: "{}", attempt: 1, fence: 42})
	post(t, s, delivery{id: "m1", body: "{}", attempt: 2, fence: 43})
	want := "12:00:00.005  200  order-placed  m1  attempt 1  fence 42  2 bytes  handled\n" +
		"12:00:00.005  200  order-placed  m1  attempt 2  fence 43  2 bytes  repeat, suppressed\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
	if line := (sink.Entry{ID: "\x1b[2J\u202e", Type: "a b"}).Line(); strings.ContainsAny(line, "\x1b\u202e") {
		t.Errorf("%q would command a terminal", line)
	}

	out.Reset()
	s = open(t, sink.Config{Out: &out, JSON: true})
	post(t, s, delivery{id: "m2"})
	var entry sink.Entry
	if err := json.Unmarshal(out.Bytes(), &entry); err != nil || entry.ID != "m2" {
		t.Errorf("printed %s: %v", &out, err)
	}
}

func TestSecretsAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "whsec_", "whsec_****", "whsec_c2hvcnQ=", "hunter2hunter2hunter2hunter2hunter2!!"} {
		if _, err := sink.New(sink.Config{Secrets: []string{bad}}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := sink.New(sink.Config{Journal: t.TempDir()}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder as journal: %v", err)
	}
}

func TestConcurrentRepeatsAreHandledOnce(t *testing.T) {
	t.Parallel()
	s := open(t, sink.Config{Secrets: []string{secret}, Journal: filepath.Join(t.TempDir(), "j")})
	var wg sync.WaitGroup
	for i := range 64 {
		request := delivery{id: strconv.Itoa(i % 4), body: "x", secret: secret}.request(t, "http://sink.test")
		wg.Go(func() { s.ServeHTTP(httptest.NewRecorder(), request) })
	}
	wg.Wait()
	if stats := s.Stats(); stats.Handled != 4 || stats.Repeated != 60 {
		t.Errorf("stats: %+v", stats)
	}
}
