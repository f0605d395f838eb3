package api_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/deliveries"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/messages"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

const orderPlaced = `---
title: An order was placed
direction: outbound
trust: authoritative
guarantee: at-least-once
boundary: the receiver's 2xx status line
duplicates: a receiver keeps the ids it handled
retry_horizon: retry-horizon
runbook: recover-dead-letters
versions:
  - version: 1
    fields: {order: internal, total: internal}
    schema:
      type: object
      required: [order]
      properties:
        order: {type: integer}
---
Placed.
`

// bed is the whole API on a real store, served over HTTP. Nothing is delivered: the dispatcher is not started.
type bed struct {
	server *httptest.Server
	store  *store.Store
	deps   api.Deps
	tokens map[access.Role]string
	far    string // an admin's token of another tenant
	reads  sync.Once
	says   *contract
}

func newBed(t *testing.T, change func(*api.Deps), more ...func(*store.Store, *api.Deps)) *bed {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(folder, "posthorn.db"), Schema: string(schema), SchemaVersion: outbox.SchemaVersion, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	set, err := records.Load(fstest.MapFS{"integration-events/order-placed.md": {Data: []byte(orderPlaced)}})
	if err != nil {
		t.Fatal(err)
	}
	current := func() *records.Set { return set }
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: db.Writer, Read: db.Read})
	if err != nil {
		t.Fatal(err)
	}
	key, err := destinations.CreateKey(filepath.Join(folder, "posthorn.key"))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := egress.ParseAllow([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	m := mediator.New(mediator.Config{Writer: db.Writer, Read: db.Read})
	judge := emits.Judge{Records: current}
	service := destinations.New(destinations.Config{Mediator: m, Writer: db.Writer, Read: db.Read, Dispatcher: dispatcher, Key: key, Egress: policy,
		Defaults: destinations.Defaults{WebhookConcurrency: 16, FileConcurrency: 1, Timeout: 15 * time.Second, RetryAfterCap: time.Hour,
			PullConcurrency: 256, PullBatch: 100, PullWait: 30 * time.Second, PullCap: time.Hour}})
	t.Cleanup(service.Close)
	b := &bed{store: db, tokens: map[access.Role]string{}, deps: api.Deps{Mediator: m, Documents: documents.New(m, judge), Messages: messages.New(m, judge, service.Lease), Deliveries: deliveries.New(m, dispatcher),
		Destinations: service, Tokens: access.NewTokens(db.Writer, db.Read), Records: current, Dispatcher: dispatcher, Writer: db.Writer, Version: "test"}}
	err = db.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "order-placed", SchemaVersion: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	local := access.LocalPrincipal()
	for _, role := range access.Roles() {
		if _, b.tokens[role], err = b.deps.Tokens.Create(t.Context(), local, access.NewToken{Role: role, Name: "the-" + string(role)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, b.far, err = b.deps.Tokens.Create(t.Context(), local, access.NewToken{Role: access.Admin, Tenant: "far"}); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&b.deps)
	}
	for _, fn := range more {
		fn(db, &b.deps)
	}
	handler, err := api.New(b.deps)
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewServer(handler)
	t.Cleanup(b.server.Close)
	return b
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("no problem: %d %s %q", a.status, a.header.Get("Content-Type"), a.body)
	}
	return p
}

// send makes a request with a token, and holds the answer against the OpenAPI document; headers come in pairs.
func (b *bed) send(t *testing.T, token, method, path, body string, headers ...string) answer {
	t.Helper()
	a := b.exchange(t, token, method, path, body, headers...)
	b.contract(t).holds(t, method, path, a)
	return a
}

func (b *bed) exchange(t *testing.T, token, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(read)}
}

func (b *bed) post(t *testing.T, path, body string, headers ...string) answer {
	t.Helper()
	return b.send(t, b.tokens[access.Admin], http.MethodPost, path, body, headers...)
}

func (b *bed) get(t *testing.T, path string, headers ...string) answer {
	t.Helper()
	return b.send(t, b.tokens[access.Admin], http.MethodGet, path, "", headers...)
}

// rows fingerprints everything that a request could have written.
func (b *bed) rows(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	for _, query := range []string{
		`SELECT count(*), coalesce(sum(version), 0) FROM documents`, `SELECT count(*), 0 FROM outbox_messages`, `SELECT count(*), 0 FROM outbox_deliveries`,
		`SELECT count(*), 0 FROM posthorn_idempotency`, `SELECT count(*), 0 FROM posthorn_destinations`, `SELECT count(*), count(revoked_at) FROM posthorn_tokens`,
		`SELECT count(*), 0 FROM posthorn_audit`,
	} {
		var n, more sql.NullInt64
		if err := b.store.Read.DB.QueryRow(query).Scan(&n, &more); err != nil {
			t.Fatal(err)
		}
		out.WriteString(query + ": " + itoa(n.Int64) + " " + itoa(more.Int64) + "\n")
	}
	return out.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
