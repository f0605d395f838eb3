package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/outbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

// what differs from run to run
var variable = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`), `"TIME"`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`"whsec_[^"]+"`), `"SECRET"`}, {regexp.MustCompile(`"ph_[^"]+"`), `"TEXT"`}, {regexp.MustCompile(`tok_[0-9a-f]+`), "TOKEN"},
	{regexp.MustCompile(`"oldest_pending_age_seconds": [0-9.e-]+`), `"oldest_pending_age_seconds": AGE`},
}

// TestWireShapes holds what others build on: names, order and form of every answer.
func TestWireShapes(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	var out bytes.Buffer
	for _, step := range []struct{ method, path, body string }{
		{"POST", "/v1/destinations", `{"name":"shop","kind":"webhook","url":"https://example.org/hook?key=1","types":["order-*"],"concurrency":8,"rate":2.5,"timeout":"5s"}`},
		{"POST", "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"1001","body":{"total": 12345678901234567890.10},"if_version":0},{"op":"put","collection":"orders","id":"1002","body":null},{"op":"delete","collection":"orders","id":"1002"}],"emits":[{"type":"order-placed","schema_version":1,"payload":{"order": 1001, "total": 12345678901234567890.10},"id":"m-1","ordering_key":"orders/1001"},{"type":"order-placed","payload":{"order":1}}]}`},
		{"GET", "/v1/documents/orders/1001", ""},
		{"GET", "/v1/documents/orders?limit=1", ""},
		{"GET", "/v1/messages/m-1", ""},
		{"GET", "/v1/messages?state=dead-letter", ""},
		{"GET", "/v1/messages?limit=1", ""},
		{"POST", "/v1/messages", `{"type":"order-placed","payload":{"order":2},"id":"m-2","deliver_at":"2099-01-01T01:00:00+01:00"}`},
		{"POST", "/v1/messages", `{"type":"order-placed","payload":{"order":2},"id":"m-2","deliver_at":"2099-01-01T00:00:00Z"}`},
		{"GET", "/v1/backlog", ""},
		{"GET", "/v1/destinations", ""},
		{"POST", "/v1/destinations/shop/pause", `{"reason":"moving"}`},
		{"POST", "/v1/destinations/shop/resume", ""},
		{"PATCH", "/v1/destinations/shop", `{"types":["order-*","parcel-sent"],"rate":5,"timeout":""}`},
		{"POST", "/v1/destinations/shop/rotate-secret", `{"overlap":"1h"}`},
		{"DELETE", "/v1/destinations/shop", ""},
		{"POST", "/v1/destinations", `{"name":"till","kind":"pull","types":["order-*"],"timeout":"1m"}`},
		{"GET", "/v1/pull/till?max=5&wait=1s", ""},
		{"POST", "/v1/pull/till/1", `{"fence":1,"outcome":"delivered"}`},
		{"POST", "/v1/tokens", `{"role":"viewer","name":"eye"}`},
		{"DELETE", "/v1/tokens/eye", ""},
		{"GET", "/healthz", ""},
		{"GET", "/readyz", ""},
		{"POST", "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"1001","body":1,"if_version":7}]}`},
		{"POST", "/v1/messages", `{"type":"order-lost","payload":{}}`},
	} {
		if strings.HasPrefix(step.path, "/v1/messages/m-1") {
			b.fail(t, "m-1")
		}
		a := b.send(t, b.tokens[access.Admin], step.method, step.path, step.body)
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(a.body), "", "  "); err != nil {
			t.Fatalf("%s %s: %v in %q", step.method, step.path, err, a.body)
		}
		out.WriteString("### " + step.method + " " + step.path + "\n" + itoa(int64(a.status)) + " " + a.header.Get("Content-Type") + "\n" + strings.TrimSpace(pretty.String()) + "\n\n")
	}
	got := out.String()
	for _, v := range variable {
		got = v.form.ReplaceAllString(got, v.as)
	}
	golden := filepath.Join("testdata", "wire.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(gotLines), len(wantLines)) {
			if gotLines[i] != wantLines[i] {
				t.Fatalf("line %d is %q, want %q (go test -update writes it anew)", i+1, gotLines[i], wantLines[i])
			}
		}
		t.Fatalf("%d lines, want %d", len(gotLines), len(wantLines))
	}
}

// fail gives a message's delivery an attempt that failed and a replay.
func (b *bed) fail(t *testing.T, id string) {
	t.Helper()
	err := b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		for _, change := range []string{
			`UPDATE outbox_deliveries SET state = 'dead-letter', attempt = 1, charged = 1, fence = 9, next_attempt_at = NULL, blocked = NULL, completed_at = 1767225600000000, failure_class = 'rejected', last_error = 'answered 400' WHERE seq = (SELECT seq FROM outbox_messages WHERE id = ?)`,
			`INSERT INTO outbox_attempts(delivery, attempt, fence, charged, class, status, error, excerpt, started_at, duration) SELECT id, 1, 9, 1, 'rejected', 400, 'answered 400', '<b>no</b>', 1767225600000000, 12500 FROM outbox_deliveries WHERE seq = (SELECT seq FROM outbox_messages WHERE id = ?)`,
			`INSERT INTO outbox_replays(delivery, message, tenant, handler, actor, reason, replayed_at, failure) SELECT id, ?, 'main', handler, 'os:me', 'mended', 1767225600000000, 'rejected: answered 400' FROM outbox_deliveries LIMIT 1`,
		} {
			if _, err := tx.Tx.Tx.ExecContext(ctx, change, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPayloadsKeepTheirBytes sends payloads that a reader of JSON would change, and reads them back.
func TestPayloadsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	payload := "{ \"order\" : 1,\n\t\"total\":1.50e+400, \"\\u0061\":\"<\\/b>\u2028\" }"
	b.post(t, "/v1/messages", `{"type":"order-placed","id":"text","payload":`+payload+`}`)
	b.post(t, "/v1/messages", `{"type":"order-placed","id":"bytes","payload_base64":"eyJvcmRlciI6MX0=","content_type":"application/problem+json"}`)
	for id, want := range map[string][2]string{"text": {payload, "application/json"}, "bytes": {`{"order":1}`, "application/problem+json"}} {
		a := b.get(t, "/v1/messages/"+id+"/payload")
		if a.body != want[0] || a.header.Get("Content-Type") != want[1] || a.header.Get("X-Content-Type-Options") != "nosniff" ||
			a.header.Get("Content-Disposition") != `attachment; filename="`+id+`"` {
			t.Errorf("%s: %q %v, want %q", id, a.body, a.header, want)
		}
	}
	document := `{ "n":123456789012345678901234567890, "n":0.1e-400 }`
	b.post(t, "/v1/transactions", `{"changes":[{"op":"put","collection":"c","id":"1","body":`+document+`}]}`)
	if a := b.get(t, "/v1/documents/c/1"); !strings.Contains(a.body, `{"n":123456789012345678901234567890,"n":0.1e-400}`) {
		t.Errorf("the document came back as %s", a.body)
	}
}

// TestARepeatedRequestIsAnsweredLikeTheFirst covers the header on both routes that take it.
func TestARepeatedRequestIsAnsweredLikeTheFirst(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	for path, body := range map[string]string{
		"/v1/messages":     `{"type":"order-placed","payload":{"order":1}}`,
		"/v1/transactions": `{"changes":[{"op":"put","collection":"c","id":"1","body":1}],"emits":[{"type":"order-placed","payload":{"order":1}}]}`,
	} {
		key := strings.TrimPrefix(path, "/v1/")
		first := b.post(t, path, body, "Idempotency-Key", key)
		before := b.rows(t)
		again := b.post(t, path, body, "Idempotency-Key", key)
		if first.status != 201 || again.status != 201 || again.body != first.body || first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: first %d %q, again %d %q %v", path, first.status, first.body, again.status, again.body, again.header)
		}
		other := b.post(t, path, strings.Replace(body, `"order":1`, `"order":2`, 1), "Idempotency-Key", key)
		if p := other.problem(t); other.status != 422 || p.Code != "idempotency-key-reused" {
			t.Errorf("%s: another request under the key: %d %s", path, other.status, p.Code)
		}
		if after := b.rows(t); after != before {
			t.Errorf("%s: repetitions changed rows", path)
		}
	}
}

// TestTheOpenAPIDocumentHoldsTogether checks what tools trip over.
func TestTheOpenAPIDocumentHoldsTogether(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(d *api.Deps) {
		d.Routes = []api.Route{{Pattern: "/v1/events", Handler: http.NotFoundHandler()}, {Pattern: "GET /metrics", Handler: http.NotFoundHandler()}}
	})
	a := b.get(t, "/openapi.json")
	if strings.Contains(a.body, "$schema") {
		t.Error("the document has $schema")
	}
	var document struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(a.body), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, document.OpenAPI)
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(a.body, -1) {
		if _, ok := document.Components.Schemas[ref[1]]; !ok {
			t.Errorf("a reference to %s, which is not there", ref[1])
		}
	}
	for _, path := range []string{"/v1/transactions", "/v1/messages/{id}/payload", "/v1/destinations/{name}/resume", "/v1/pull/{handler}", "/v1/pull/{handler}/{id}", "/v1/backlog", "/readyz", "/v1/events", "/metrics"} {
		if len(document.Paths[path]) == 0 {
			t.Errorf("%s is not described", path)
		}
	}
}

// TestReadyzTellsWhenDispatchIsGated stops the writer.
func TestReadyzTellsWhenDispatchIsGated(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(d *api.Deps) { d.Version = "" })
	if a := b.send(t, "", "GET", "/readyz", ""); a.status != 200 {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	b.store.Writer.Fail(outbox.ErrCorrupt)
	if a := b.send(t, "", "GET", "/readyz", ""); a.status != 503 || !strings.Contains(a.body, `"code":"store-damaged"`) {
		t.Errorf("gated: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("health: %d", a.status)
	}
}
