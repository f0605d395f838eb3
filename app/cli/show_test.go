package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.FixedZone("CET", 3600))

// TestShow holds what people see against golden files; -update writes them.
func TestShow(t *testing.T) {
	t.Parallel()
	const id = "0195953b-7f00-7c4a-8d11-2a52f1a0c001"
	decoded := func(show func(*terminal, page) error) func(*terminal, json.RawMessage) error {
		return func(out *terminal, answer json.RawMessage) error {
			var found page
			return errors.Join(json.Unmarshal(answer, &found), show(out, found))
		}
	}
	message := func(payload string) func(*terminal, json.RawMessage) error {
		return func(out *terminal, answer json.RawMessage) error {
			var found detail
			return errors.Join(json.Unmarshal(answer, &found), showMessage(out, found, []byte(payload)))
		}
	}
	listed := func(out *terminal, answer json.RawMessage) error {
		var found []json.RawMessage
		return errors.Join(json.Unmarshal(answer, &found), showDestinations(out, found))
	}
	tests := []struct {
		name, answer string
		show         func(*terminal, json.RawMessage) error
	}{
		{"staged", `{"id":"` + id + `","type":"order-placed","deliveries":2}`, showStaged},
		{"staged-once", `{"id":"a","type":"order-placed","deliveries":1}`, showStaged},
		{"messages", `{"messages":[
			{"id":"` + id + `","type":"order-placed","state":"dispatched","occurred_at":"2026-03-14T10:59:58Z","deliveries":[{"handler":"shop","attempt":1},{"handler":"ledger","attempt":3}]},
			{"id":"b","type":"parcel-sent","state":"dead-letter","occurred_at":"2026-03-01T10:59:58Z","deliveries":[]}],
			"next":"bWVzc2FnZXM6Nw"}`, decoded(showMessages)},
		{"messages-none", `{"messages":[],"next":null}`, decoded(showMessages)},
		{"message", `{"id":"` + id + `","kind":"integration-event","type":"order-placed","schema_version":2,"tenant":"main","occurred_at":"2026-03-14T10:59:00Z",
			"ordering_key":"orders/1001","content_type":"application/json","state":"dead-letter","deliveries":[
			{"id":7,"handler":"shop","state":"dispatched","attempt":3,"charged":1,"fence":91,"completed_at":"2026-03-14T10:59:30Z","attempts":[
				{"attempt":1,"class":"failed","status":503,"error":"answered 503","excerpt":"try\u001b[31m later\nplease","started_at":"2026-03-14T10:59:01Z","charged":true},
				{"attempt":2,"class":"unreachable","status":null,"error":"connection refused","started_at":"2026-03-14T10:59:09Z","charged":false}],
				"replays":[{"actor":"user:mary","reason":"receiver mended","replayed_at":"2026-03-14T10:59:05Z"}]},
			{"id":8,"handler":"ledger","state":"dead-letter","attempt":1,"charged":1,"fence":92,"completed_at":"2026-03-14T10:59:31Z","failure_class":"rejected","last_error":"answered 400"},
			{"id":9,"handler":"mail","state":"pending","attempt":1,"charged":1,"fence":93,"next_attempt_at":"2026-03-14T11:02:00Z"},
			{"id":11,"handler":"till","state":"processing","attempt":2,"charged":2,"fence":94,"lease_owner":"token:till","lease_expires_at":"2026-03-14T11:00:12Z"},
			{"id":10,"handler":"stats","state":"pending","blocked":true,"next_attempt_at":"2026-03-14T10:59:00Z"},
			{"id":12,"handler":"archive","state":"pending","held":true,"next_attempt_at":"2026-03-14T10:59:00Z"},
			{"id":11,"handler":"map","state":"processing","attempt":1,"fence":94}]}`, message("{\"order\": 1001}\n")},
		{"message-binary", `{"id":"c","type":"scan","schema_version":1,"content_type":"image/png","state":"pending","occurred_at":"2026-03-14T10:59:00Z","deliver_at":"2026-03-15T10:59:00Z","deliveries":[]}`, message("\x89PNG\xff")},
		{"destination-created", `{"name":"shop","types":["order-*"],"url":"https://shop.example/hook","secret":"whsec_c2VjcmV0"}`, showSecret("created")},
		{"destinations", `[{"name":"shop","kind":"webhook","url":"https://shop.example/hook","types":["order-*","parcel-sent"],"state":"flowing"},
			{"name":"archive","kind":"file","path":"/var/lib/p/files/a.jsonl","types":["*"],"state":"paused","hold":"paused by os:mary"}]`, listed},
		{"destinations-none", `[]`, listed},
		{"destination-deleted", `{"name":"shop","cancelled":2}`, showDeleted},
		{"backlog", `{"total":{"pending":3,"held":2,"failed":1,"oldest_pending_age_seconds":95.2,"attempts":120,"duration_p50_seconds":0.0042,"duration_p99_seconds":1.25,"success_rate":0.9871},
			"handlers":[{"handler":"shop","pending":1,"attempts":118,"oldest_pending_age_seconds":0.5,"duration_p50_seconds":0.004,"duration_p99_seconds":1.2,"success_rate":1},
			{"handler":"archive","pending":2,"held":2,"failed":1,"oldest_pending_age_seconds":95.2,"attempts":2,"duration_p50_seconds":null,"hold":"paused by os:mary"}]}`, showBacklog},
		{"destination-bounded", `{"name":"shop","concurrency":16,"rate":2.5}`, showDestination},
		{"destination", `{"name":"shop","types":["a","b"],"concurrency":16,"rate":0,"hold":"","created_at":"2026-03-14T10:59:00Z","freshness":{"mode":"immediate"}}`, showDestination},
		{"token", `{"id":"tok_1","name":"ci","role":"admin","token":"ph_text"}`, showToken},
		{"tokens", `{"tokens":[{"id":"tok_1","name":"ci","role":"admin","tenant":"main","created_at":"2026-03-14T10:00:00Z"},
			{"id":"tok_2","name":"old","role":"viewer","tenant":"main","created_at":"2026-03-01T10:00:00Z","revoked_at":"2026-03-14T09:00:00Z"},
			{"id":"tok_3","name":"guest","role":"viewer","tenant":"b","created_at":"2026-03-01T10:00:00Z","expires_at":"2026-03-16T12:00:00Z"},
			{"id":"tok_4","name":"past","role":"operator","tenant":"b","created_at":"2026-03-01T10:00:00Z","expires_at":"2026-03-14T10:59:50Z"}]}`, showTokens},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var plain, painted bytes.Buffer
			if err := test.show(&terminal{out: &plain, now: noon}, json.RawMessage(test.answer)); err != nil {
				t.Fatal(err)
			}
			golden(t, test.name, plain.String())
			if err := test.show(&terminal{out: &painted, now: noon, paint: palette{on: true}}, json.RawMessage(test.answer)); err != nil {
				t.Fatal(err)
			}
			if got := unpaint(painted.String()); trimmed(got) != trimmed(plain.String()) {
				t.Errorf("colours move the text:\n%s\nwithout:\n%s", got, plain.String())
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// unpaint takes the colours away.
func unpaint(text string) string {
	for _, code := range []string{"00", "02", "31", "32", "33", "36"} {
		text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
	}
	return text
}

// trimmed has no spaces at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report(&out, &client.Problem{Detail: "It is \x1b[2Jnot declared.", Advice: "Declare it."}, palette{})
	if got, want := out.String(), "error: It is \uFFFD[2Jnot declared.\nhint:  Declare it.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithPayload(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, contentType, payload, want string }{
		{"JSON keeps its bytes", "application/json", `{"a": 1.00, "a": 2e400, "b":"<&>"}`, `{"type":"t","payload":{"a": 1.00, "a": 2e400, "b":"<&>"}}`},
		{"JSON with space around it", "application/json", "{}\n", `{"type":"t","content_type":"application/json","payload_base64":"e30K"}`},
		{"another JSON", "application/ld+json", "[]", `{"type":"t","content_type":"application/ld+json","payload":[]}`},
		{"text", "text/plain; charset=utf-8", "hi", `{"type":"t","content_type":"text/plain; charset=utf-8","payload_base64":"aGk="}`},
		{"nothing", "text/plain", "", `{"type":"t","content_type":"text/plain","payload_base64":""}`},
	}
	for _, test := range tests {
		got, err := withPayload(outgoing{Type: "t", ContentType: test.contentType}, []byte(test.payload))
		if err != nil || string(got) != test.want || !json.Valid(got) {
			t.Errorf("%s: %s, %v", test.name, got, err)
		}
	}
	for _, test := range [][2]string{{"application/json", "{"}, {"application/json", ""}, {"nonsense/", "{}"}} {
		if _, err := withPayload(outgoing{Type: "t", ContentType: test[0]}, []byte(test[1])); exitCode(err) != ExitUsage {
			t.Errorf("%q: %v, want a usage error", test, err)
		}
	}
}
