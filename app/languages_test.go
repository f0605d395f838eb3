package app

import (
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/outbox/examples/databasesql"
)

// examples are programs of other languages, with their tests.
const examples = "../outbox/examples"

const orderEvent = `---
title: Something happened to an order
direction: outbound
trust: authoritative
guarantee: at-least-once
boundary: the receiver's 2xx status line
duplicates: a receiver keeps the ids it handled
retry_horizon: retry-horizon
runbook: recover-dead-letters
versions:
  - version: 1
    fields: {"*": internal}
`

const orderSchema = `    schema:
      type: object
      required: [order]
      properties:
        order: {type: integer}
`

// staged is what every example's test stages under these ids, and must arrive byte for byte.
var staged = map[string]string{
	"text":     `{"order": 1001, "note": "schön 📯"}`,
	"bytes":    "\x00\xff\xfe\x80\x7f\"\r\n",
	"nul":      "a\x00b",
	"empty":    "",
	"no-bytes": "",
	"huge":     strings.Repeat("x", 2<<20),
}

// servedShop is an application's database that is served, and what its receiver got, by message.
type servedShop struct {
	path string
	mu   sync.Mutex
	got  map[string]string
}

func serveShop(t *testing.T) *servedShop {
	t.Helper()
	path, db := shopDB(t)
	_ = db.Close()
	s := &servedShop{path: path, got: map[string]string{}}
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got[r.Header.Get("webhook-id")] = string(body)
	}))
	t.Cleanup(target.Close)
	folder := filepath.Join(DataDirOf(path), "records", "integration-events")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"order-paid": orderEvent, "order-shipped": orderEvent + orderSchema} {
		if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(text+"---\nAn order.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := open(t, besideOptions(t, path))
	_, err := a.destinations.Create(access.With(t.Context(), access.LocalPrincipal()), destinations.NewDestination{Name: "shop", Kind: destinations.Webhook, URL: target.URL,
		Types: []string{"order-*"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judge holds what arrived against what was staged.
func (s *servedShop) judge(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, want := range staged {
		if got, there := s.got[id]; !there || got != want {
			t.Errorf("%s: arrived %v, %d bytes, want %d: %.60q", id, there, len(got), len(want), got)
		}
	}
	paid := 0
	for id, body := range s.got {
		switch id {
		case "rolled-back", "before-the-error", "refused", "wrong", "no-json", "breaks":
			t.Errorf("%s arrived: %.60q", id, body)
		}
		if strings.ReplaceAll(body, " ", "") == `{"order":1}` {
			paid++
		}
	}
	if paid != 1 {
		t.Errorf("%d messages tell of the paid order, want 1", paid)
	}
}

// runExample has an example's test stage in a served database, and holds what arrives against what was staged.
func runExample(t *testing.T, folder string, command ...string) {
	t.Helper()
	s := serveShop(t)
	test := exec.CommandContext(t.Context(), command[0], command[1:]...)
	test.Dir = filepath.Join(examples, folder)
	test.Env = append(os.Environ(), "SHOP_DB="+s.path, "PYTHONDONTWRITEBYTECODE=1")
	if output, err := test.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	s.judge(t)
}

func TestStagingFromPython(t *testing.T) {
	t.Parallel()
	runExample(t, "python", "python3", "-m", "unittest", "-q")
}

func TestStagingFromPHP(t *testing.T) {
	t.Parallel()
	runExample(t, "php", "php", "shop_test.php")
}

func TestStagingFromTheShell(t *testing.T) {
	t.Parallel()
	runExample(t, "shell", "sh", "shop_test.sh")
}

func TestStagingFromDatabaseSQL(t *testing.T) {
	t.Parallel()
	s := serveShop(t)
	db, err := sql.Open("sqlite", "file:"+s.path+"?_txlock=immediate&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for id, payload := range map[string]any{"text": staged["text"], "bytes": []byte(staged["bytes"]), "nul": staged["nul"], "empty": "", "no-bytes": []byte{}, "huge": staged["huge"]} {
		must(t, db, `INSERT INTO outbox_messages(id, type, payload) VALUES (?, 'order-paid', ?)`, id, payload)
	}
	must(t, db, `INSERT INTO orders(id) VALUES (1)`)
	message, err := databasesql.Pay(t.Context(), db, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"text", "bytes", "nul", "empty", "no-bytes", "huge", message} {
		eventually(t, id+" is dispatched", func() bool {
			state, err := databasesql.State(t.Context(), db, id)
			if err != nil {
				t.Fatal(err)
			}
			return state == "dispatched"
		})
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`INSERT INTO outbox_messages(id, type, payload) VALUES ('rolled-back', 'order-paid', '{}')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if state, err := databasesql.State(t.Context(), db, "rolled-back"); err != nil || state != "" {
		t.Errorf("rolled back: %q, %v", state, err)
	}
	var refusals []struct{ Says, SQL string }
	text, err := os.ReadFile(filepath.Join(examples, "refusals.json"))
	if err == nil {
		err = json.Unmarshal(text, &refusals)
	}
	if err != nil || len(refusals) == 0 {
		t.Fatal(err)
	}
	for _, r := range refusals {
		if _, err := db.Exec(r.SQL); err == nil || !strings.Contains(err.Error(), r.Says) {
			t.Errorf("%s: %v", r.SQL, err)
		}
	}
	s.judge(t)
}
