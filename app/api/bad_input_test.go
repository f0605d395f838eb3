package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
)

// TestBadInput sends every kind of bad request: each is a problem with a stable code, repeats nothing that was received, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if a := b.post(t, "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"1","body":1}],"emits":[{"type":"order-placed","id":"taken","payload":{"order":1}}]}`); a.status != 201 {
		t.Fatalf("seed: %d %s", a.status, a.body)
	}
	const tx, msg, dest = "/v1/transactions", "/v1/messages", "/v1/destinations"
	change := func(rest string) string {
		return `{"changes":[{"op":"put","collection":"orders","id":"2","body":2},{` + rest + `}]}`
	}
	event := func(rest string) string { return `{"type":"order-placed",` + rest + `}` }
	hook := func(rest string) string { return `{"name":"shop","kind":"webhook","types":["*"],` + rest + `}` }
	put := `"op":"put","collection":"orders","id":"1","body":2`
	before := b.rows(t)
	for _, c := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"no body", tx, "", 415, "unsupported-media-type"},
		{"blank body", tx, " ", 400, "missing-body"},
		{"no JSON", tx, `{"changes":`, 400, "malformed-json"},
		{"two values", tx, `{} {}`, 400, "malformed-json"},
		{"no object", tx, `[]`, 422, "wrong-type"},
		{"null", tx, `null`, 422, "wrong-type"},
		{"invalid UTF-8", tx, change("\"op\":\"put\",\"collection\":\"orders\",\"id\":\"3\",\"body\":\"S3CR3T\xff\""), 400, "invalid-utf8"},
		{"deep", tx, `{"changes":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, 400, "malformed-json"},
		{"unknown field", tx, change(put + `,"S3CR3T":1`), 422, "unknown-field"},
		{"unknown field at the top", tx, `{"changes":[],"$schema":"x"}`, 422, "unknown-field"},
		{"unprintable unknown field", tx, `{"S3CR3T\n\u0007":1}`, 422, "unknown-field"},
		{"wrong case", tx, `{"Changes":[]}`, 422, "unknown-field"},
		{"wrong case inside", tx, change(`"OP":"put","collection":"orders","id":"1","body":2`), 422, "unknown-field"},
		{"field twice", tx, change(put + `,"id":"S3CR3T"`), 422, "duplicate-field"},
		{"escaped name twice", tx, change(put + `,"i\u0064":"4"`), 422, "duplicate-field"},
		{"missing field", tx, change(`"op":"put","id":"1","body":2`), 422, "missing-field"},
		{"wrong type", tx, change(`"op":"put","collection":["S3CR3T"],"id":"1","body":2`), 422, "wrong-type"},
		{"number for id", tx, change(`"op":"put","collection":"orders","id":1001,"body":2`), 422, "wrong-type"},
		{"fraction for version", tx, change(put + `,"if_version":1.0`), 422, "wrong-type"},
		{"huge version", tx, change(put + `,"if_version":99999999999999999999`), 422, "wrong-type"},
		{"half a character", tx, change(`"op":"put","collection":"orders","id":"\ud800","body":2`), 422, "wrong-type"},
		{"many entries", tx, `{"changes":[` + strings.Repeat(`1,`, 10_001) + `1]}`, 422, "wrong-type"},
		{"empty", tx, `{}`, 422, "invalid"},
		{"bad op", tx, change(`"op":"S3CR3T","collection":"orders","id":"1","body":2`), 422, "invalid"},
		{"bad collection", tx, change(`"op":"put","collection":"S3CR3T","id":"1","body":2`), 422, "invalid"},
		{"bad id", tx, change(`"op":"put","collection":"orders","id":"S3CR3T/..","body":2`), 422, "invalid"},
		{"no body of a put", tx, change(`"op":"put","collection":"orders","id":"1"`), 422, "invalid"},
		{"body of a delete", tx, change(`"op":"delete","collection":"orders","id":"1","body":2`), 422, "invalid"},
		{"version conflict", tx, change(put + `,"if_version":7`), 409, "version-conflict"},
		{"it exists", tx, change(put + `,"if_version":0`), 409, "version-conflict"},
		{"delete what is not there", tx, change(`"op":"delete","collection":"orders","id":"9"`), 404, "no-document"},
		{"too many changes", tx, `{"changes":[` + strings.TrimSuffix(strings.Repeat(`{`+put+`},`, 101), ",") + `]}`, 422, "invalid"},
		{"too many emits", tx, `{"emits":[` + strings.TrimSuffix(strings.Repeat(event(`"payload":{"order":1}`)+",", 101), ",") + `]}`, 422, "invalid"},
		{"undeclared in a transaction", tx, `{"changes":[{` + put + `}],"emits":[{"type":"order-lost","payload":1}]}`, 422, "undeclared-type"},
		{"bad id in a transaction", tx, `{"changes":[{` + put + `}],"emits":[` + event(`"payload":{"order":1},"id":"S3CR3T/1"`) + `]}`, 422, "invalid"},

		{"undeclared", msg, `{"type":"order-lost","payload":{}}`, 422, "undeclared-type"},
		{"undeclared version", msg, event(`"payload":{"order":1},"schema_version":9`), 422, "undeclared-type"},
		{"bad type", msg, `{"type":"S3CR3T","payload":{}}`, 422, "invalid"},
		{"payload against its schema", msg, event(`"payload":{"order":"S3CR3T"}`), 422, "invalid-payload"},
		{"payload with a name twice", msg, event(`"payload":{"order":1,"order":2}`), 422, "invalid-payload"},
		{"no payload", msg, event(`"id":"x"`), 422, "invalid"},
		{"two payloads", msg, event(`"payload":{"order":1},"payload_base64":"AA==","content_type":"a/b"`), 422, "invalid"},
		{"bad Base64", msg, event(`"payload_base64":"S3CR3T","content_type":"a/b"`), 422, "invalid"},
		{"bytes without a type", msg, event(`"payload_base64":"AA=="`), 422, "invalid"},
		{"bad media type", msg, event(`"payload_base64":"AA==","content_type":"a/b\r\nS3CR3T: 1"`), 422, "invalid"},
		{"media type of no JSON", msg, event(`"payload":{"order":1},"content_type":"text/plain"`), 422, "invalid"},
		{"bad time", msg, event(`"payload":{"order":1},"deliver_at":"2026-01-01T00:00:00"`), 422, "invalid"},
		{"ordered and scheduled", msg, event(`"payload":{"order":1},"ordering_key":"k","deliver_at":"2030-01-01T00:00:00Z"`), 422, "invalid"},
		{"empty ordering key", msg, event(`"payload":{"order":1},"ordering_key":""`), 422, "invalid"},
		{"duplicate id", msg, event(`"payload":{"order":2},"id":"taken"`), 409, "duplicate-id"},
		{"duplicate id, other spelling", msg, event(`"payload":{"order": 1},"id":"taken"`), 409, "duplicate-id"},
		{"large payload", msg, event(`"payload":{"order":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`), 413, "payload-too-large"},
		{"another tenant", msg, event(`"payload":{"order":1},"tenant":"far"`), 403, "forbidden"},

		{"bad URL", dest, hook(`"url":"ftp://S3CR3T.example.org"`), 422, "invalid-destination"},
		{"private address", dest, hook(`"url":"http://10.1.2.3/S3CR3T"`), 422, "address-not-allowed"},
		{"no types", dest, `{"name":"shop","kind":"webhook","url":"https://example.org","types":[]}`, 422, "invalid-destination"},
		{"bad name", dest, `{"name":"S3CR3T/","kind":"webhook","url":"https://example.org","types":["*"]}`, 422, "invalid-destination"},
		{"bad timeout", dest, hook(`"url":"https://example.org","timeout":""`), 422, "invalid-destination"},
		{"no concurrency", dest, hook(`"url":"https://example.org","concurrency":0`), 422, "invalid-destination"},
		{"bad role", "/v1/tokens", `{"role":"S3CR3T"}`, 422, "invalid-token"},
		{"bad expiry", "/v1/tokens", `{"role":"viewer","expires_at":"S3CR3T"}`, 422, "invalid-token"},
		{"expiry in the year 10000", "/v1/tokens", `{"role":"viewer","expires_at":"9999-12-31T23:59:59-23:59"}`, 422, "invalid-token"},
		{"backfill to the year 10000", dest + "/shop/backfill", `{"to":"9999-12-31T23:59:59-23:59"}`, 422, "bad-time"},
		{"delivery in the year 10000", msg, event(`"payload":{"order":1},"deliver_at":"9999-12-31T23:59:59-23:59"`), 422, "invalid"},
		{"delivery before 1970", msg, event(`"payload":{"order":1},"deliver_at":"1970-01-01T00:00:00+23:59"`), 422, "invalid"},
		{"pause nothing", dest + "/nothing/pause", ``, 404, "unknown-destination"},
	} {
		a := b.post(t, c.path, c.body)
		p := a.problem(t)
		if a.status != c.status || p.Code != c.code || p.Status != c.status || p.Detail == "" || p.Hint == "" {
			t.Errorf("%s: answered %d %s, want %d %s: %s", c.name, a.status, p.Code, c.status, c.code, a.body)
		}
		if strings.Contains(a.body, "S3CR3T") && c.name != "unknown field" {
			t.Errorf("%s: the problem repeats what was received: %s", c.name, a.body)
		}
		if after := b.rows(t); after != before {
			t.Errorf("%s: rows changed from\n%sto\n%s", c.name, before, after)
			before = after
		}
	}
}

// TestBadQueries asks for what cannot be: foreign, unknown or impossible.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.post(t, "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"1","body":1}],"emits":[{"type":"order-placed","id":"m","payload":{"order":1}}]}`)
	for _, c := range []struct {
		method, path string
		token        string
		status       int
		code         string
	}{
		{"GET", "/v1/documents/orders/2", "", 404, "no-document"},
		{"GET", "/v1/documents/nothing/2", "", 404, "unknown-collection"},
		{"GET", "/v1/documents/nothing", "", 404, "unknown-collection"},
		{"GET", "/v1/documents/S3CR3T/1", "", 422, "bad-id"},
		{"GET", "/v1/documents/orders/a%2Fb", "", 422, "bad-id"},
		{"GET", "/v1/documents/orders/1", b.far, 404, "unknown-collection"},
		{"GET", "/v1/messages/m", b.far, 404, "no-message"},
		{"GET", "/v1/messages/m/payload", b.far, 404, "no-message"},
		{"GET", "/v1/messages/other", "", 404, "no-message"},
		{"GET", "/v1/messages/a%20b", "", 422, "bad-id"},
		{"GET", "/v1/messages?state=S3CR3T", "", 422, "bad-filter"},
		{"GET", "/v1/messages?type=S3CR3T", "", 422, "bad-filter"},
		{"GET", "/v1/messages?tenant=far", "", 403, "forbidden"},
		{"GET", "/v1/messages?from=2026-01-01", "", 422, "bad-time"},
		{"GET", "/v1/messages?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "", 422, "bad-filter"},
		{"GET", "/v1/messages?from=9999-12-31T23:59:59-23:59", "", 422, "bad-time"},
		{"GET", "/v1/messages?from=0001-01-01T00:00:00%2B23:59", "", 422, "bad-time"},
		{"GET", "/v1/messages?limit=201", "", 422, "bad-limit"},
		{"GET", "/v1/messages?limit=0", "", 422, "bad-limit"},
		{"GET", "/v1/messages?limit=S3CR3T", "", 422, "bad-limit"},
		{"GET", "/v1/messages?cursor=S3CR3T", "", 422, "bad-cursor"},
		{"GET", "/v1/messages?S3CR3T=1", "", 422, "unknown-parameter"},
		{"GET", "/v1/messages?limit=1&limit=2", "", 422, "unknown-parameter"},
		{"GET", "/v1/messages?q=%ff", "", 422, "unknown-parameter"},
		{"GET", "/v1/messages?q=%zz", "", 400, "malformed-query"},
		{"GET", "/v1/destinations/nothing", "", 404, "unknown-destination"},
		{"DELETE", "/v1/tokens/nothing", "", 404, "no-token"},
		{"GET", "/v1/nothing", "", 404, "not-found"},
		{"PUT", "/v1/messages", "", 405, "method-not-allowed"},
		{"DELETE", "/v1/documents/orders/1", "", 405, "method-not-allowed"},
		{"GET", "/v1/messages", "nobody", 401, "unauthenticated"},
		{"GET", "/openapi.json", "nobody", 401, "unauthenticated"},
		{"GET", "/v1/nothing", "nobody", 401, "unauthenticated"},
	} {
		token := c.token
		switch token {
		case "":
			token = b.tokens[access.Admin]
		case "nobody":
			token = ""
		}
		a := b.send(t, token, c.method, c.path, "")
		p := a.problem(t)
		if a.status != c.status || p.Code != c.code || p.Hint == "" {
			t.Errorf("%s %s: answered %d %s, want %d %s: %s", c.method, c.path, a.status, p.Code, c.status, c.code, a.body)
		}
		if strings.Contains(a.body, "S3CR3T") && c.code != "unknown-parameter" {
			t.Errorf("%s %s: the problem repeats what was received: %s", c.method, c.path, a.body)
		}
	}
}

// TestRequestsAreGuarded covers what is wrong around a request rather than in it.
func TestRequestsAreGuarded(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	good := `{"type":"order-placed","payload":{"order":1}}`
	before := b.rows(t)
	for _, c := range []struct {
		name    string
		headers []string
		body    string
		status  int
		code    string
	}{
		{"media type", []string{"Content-Type", "text/plain"}, good, 415, "unsupported-media-type"},
		{"charset", []string{"Content-Type", "application/json; charset=latin1"}, good, 415, "unsupported-media-type"},
		{"compressed", []string{"Content-Encoding", "gzip"}, good, 415, "unsupported-media-type"},
		{"another host", []string{"Host", "evil.example.org"}, good, 421, "unknown-host"},
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}, good, 403, "cross-origin"},
		{"another origin", []string{"Origin", "https://evil.example.org"}, good, 403, "cross-origin"},
		{"forged token", []string{"Authorization", "Bearer ph_" + strings.Repeat("A", 43)}, good, 401, "unauthenticated"},
		{"other scheme", []string{"Authorization", "Basic " + b.tokens[access.Admin]}, good, 401, "unauthenticated"},
		{"long key", []string{"Idempotency-Key", strings.Repeat("k", 201)}, good, 422, "bad-idempotency-key"},
		{"oversized", nil, `{"type":"` + strings.Repeat("x", 4<<20) + `"}`, 413, "body-too-large"},
	} {
		a := b.post(t, "/v1/messages", c.body, c.headers...)
		if p := a.problem(t); a.status != c.status || p.Code != c.code {
			t.Errorf("%s: answered %d %s, want %d %s", c.name, a.status, p.Code, c.status, c.code)
		}
	}
	if after := b.rows(t); after != before {
		t.Errorf("rows changed from\n%sto\n%s", before, after)
	}
}

// TestRolesBoundWhatACallerMayDo asks for each thing with each role.
func TestRolesBoundWhatACallerMayDo(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	rank := map[access.Role]int{access.Viewer: 1, access.Operator: 2, access.Admin: 3}
	for i, c := range []struct {
		method, path, body string
		least              access.Role
	}{
		{"GET", "/v1/messages", "", access.Viewer}, {"GET", "/v1/backlog", "", access.Viewer}, {"GET", "/v1/records", "", access.Viewer},
		{"GET", "/v1/destinations", "", access.Viewer}, {"GET", "/openapi.json", "", access.Viewer},
		{"POST", "/v1/messages", `{"type":"order-placed","payload":{"order":%d}}`, access.Operator},
		{"POST", "/v1/transactions", `{"changes":[{"op":"put","collection":"c","id":"%d","body":1}]}`, access.Operator},
		{"POST", "/v1/destinations/gone/test", "", access.Operator}, {"PATCH", "/v1/destinations/gone", `{"concurrency":%d}`, access.Admin},
		{"POST", "/v1/destinations/gone/rotate-secret", "", access.Admin},
		{"GET", "/v1/tokens", "", access.Admin}, {"POST", "/v1/tokens", `{"role":"viewer","name":"t%d"}`, access.Admin},
		{"POST", "/v1/destinations", `{"name":"d%d","kind":"webhook","url":"https://example.org","types":["*"]}`, access.Admin},
	} {
		for role, token := range b.tokens {
			body := c.body
			if body != "" {
				body = fmt.Sprintf(body, i*10+rank[role])
			}
			a := b.send(t, token, c.method, c.path, body)
			if allowed := rank[role] >= rank[c.least]; allowed != (a.status < 300 || a.status == 404) || !allowed && a.problem(t).Code != "forbidden" {
				t.Errorf("%s %s as %s: %d %s", c.method, c.path, role, a.status, a.body)
			}
		}
	}
}

func TestAPanicIsAProblem(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(d *api.Deps) {
		d.Routes = []api.Route{{Pattern: "GET /v1/panic", Public: true, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("S3CR3T") })}}
	})
	a := b.send(t, "", "GET", "/v1/panic", "")
	if p := a.problem(t); a.status != 500 || p.Code != "internal" || strings.Contains(a.body, "S3CR3T") {
		t.Errorf("a panic: %d %s", a.status, a.body)
	}
	if a := b.post(t, "/v1/panic", ""); a.status != 405 {
		t.Errorf("POST to a route for GET: %d", a.status)
	}
}
