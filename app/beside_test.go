package app

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/store"
)

// shopDB is an application's database with the outbox in it.
func shopDB(t *testing.T) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.db")
	return path, shop(t, path, `CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0);`+besideSchema(schema(t)))
}

// shop opens the application's database as the application does: with its own settings, not ours.
func shop(t *testing.T, path, ddl string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	must(t, db, ddl)
	return db
}

func must(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

const pay = `INSERT INTO orders(paid) VALUES (1); INSERT INTO outbox_messages(type, payload) VALUES ('parcel-sent', '{"parcel":"P-1","carrier":"north","sent_at":"2026-01-31T09:30:00Z"}')`

// receiver counts webhooks.
func receiver(t *testing.T) (url string, ids chan string) {
	t.Helper()
	ids = make(chan string, 1000)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ids <- r.Header.Get("webhook-id") }))
	t.Cleanup(target.Close)
	return target.URL, ids
}

func besideOptions(t *testing.T, path string) Options {
	t.Helper()
	options := testOptions(t, "")
	options.DB = path
	return options
}

func createShop(t *testing.T, a *Appliance, url string) {
	t.Helper()
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Create(ctx, destinations.NewDestination{Name: "shop", Kind: destinations.Webhook, URL: url, Types: []string{"parcel-*"}}); err != nil {
		t.Fatal(err)
	}
}

func TestBesideAnApplication(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	must(t, db, pay)
	if id := <-ids; len(id) != 32 {
		t.Errorf("webhook-id %q", id)
	}
	// Whatever the application does with its file, delivery goes on.
	for _, step := range []string{"ALTER TABLE orders ADD COLUMN note TEXT", "VACUUM", "CREATE TABLE other (id INTEGER PRIMARY KEY)", "PRAGMA wal_checkpoint(TRUNCATE)",
		"VACUUM INTO '" + filepath.Join(t.TempDir(), "copy.db") + "'", "REINDEX", "ANALYZE", "DROP TABLE other"} {
		must(t, db, step)
		must(t, db, pay)
		<-ids
	}
	if err := a.dispatcher.Down(); err != nil {
		t.Errorf("down: %v", err)
	}
	var mode string
	if err := db.QueryRow(`PRAGMA journal_mode=DELETE`).Scan(&mode); err == nil && mode != "wal" {
		t.Errorf("the journal mode could be changed under a running process: %s", mode)
	}
	for _, folder := range []string{"/v1/transactions", "/v1/documents/orders/1"} {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, folder, nil)
		a.Handler().ServeHTTP(answer, request.WithContext(access.With(t.Context(), access.LocalPrincipal())))
		if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), `"documents-off"`) {
			t.Errorf("%s: %d %s", folder, answer.Code, answer.Body)
		}
	}
	closeNow(t, a)
	if got := tables(t, db); !slices.Equal(got, []string{"orders", "outbox_attempts", "outbox_backfills", "outbox_deliveries", "outbox_inbox", "outbox_lanes",
		"outbox_messages", "outbox_replays", "outbox_routes", "outbox_types", "outbox_workers", "posthorn_idempotency", "posthorn_meta"}) {
		t.Errorf("the application's file has the tables %v", got)
	}
	for _, name := range []string{DatabaseName, KeyName, besideName} {
		if info, err := os.Stat(filepath.Join(path+".posthorn", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// The data folder alone says where it belongs.
	again := open(t, testOptions(t, path+".posthorn"))
	must(t, db, pay)
	<-ids
	closeNow(t, again)
}

func tables(t *testing.T, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestApplicationHoldsItsLock(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	must(t, db, "BEGIN IMMEDIATE")
	must(t, db, pay)
	must(t, db, pay)
	if len(ids) != 0 {
		t.Error("delivered before the commit")
	}
	must(t, db, "ROLLBACK")
	must(t, db, pay)
	<-ids
	if n := number(t, db, `SELECT count(*) FROM outbox_messages`); n != 1 {
		t.Errorf("%d messages of rolled-back transactions", n-1)
	}
}

func TestPowerCutBetweenTheTwoFiles(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	closeNow(t, a)
	// A creation whose row never came, and a deletion whose row is still there.
	must(t, db, `INSERT INTO outbox_routes(handler, pattern, tenant, source) VALUES ('newcomer', 'parcel-*', 'main', 'destination')`)
	must(t, db, `INSERT INTO posthorn_meta(name, value) VALUES ('leaving:shop', 'the destination was deleted'); DELETE FROM outbox_routes WHERE handler = 'shop'`)
	must(t, db, pay)
	a = open(t, besideOptions(t, path))
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Get(ctx, "shop"); err == nil {
		t.Error("the deleted destination is back")
	}
	if n := number(t, db, `SELECT count(*) FROM outbox_lanes WHERE handler = 'newcomer'`) + number(t, db, `SELECT count(*) FROM outbox_deliveries WHERE handler = 'newcomer' AND state = 'pending'`); n != 2 {
		t.Errorf("what goes to the unknown destination is not held: %d", n)
	}
	if _, err := a.destinations.Create(ctx, destinations.NewDestination{Name: "newcomer", Kind: destinations.Webhook, URL: url, Types: []string{"parcel-*"}}); err != nil {
		t.Fatal(err)
	}
	<-ids
}

func TestOlderCopyOfTheApplicationsDatabase(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	must(t, db, pay)
	<-ids
	copied := filepath.Join(t.TempDir(), "copy.db")
	must(t, db, "VACUUM INTO '"+copied+"'")
	must(t, db, pay)
	second := <-ids
	eventually(t, "settled", func() bool {
		return number(t, db, `SELECT count(*) FROM outbox_deliveries WHERE state = 'dispatched'`) == 2
	})
	fence := number(t, db, `SELECT value FROM posthorn_meta WHERE name = 'fence'`)
	closeNow(t, a)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + left)
	}
	db = shop(t, path, "SELECT 1") // as an application would: back to WAL
	_, err := Open(t.Context(), besideOptions(t, path))
	if !errors.Is(err, ErrOlderCopy) {
		t.Fatalf("an older copy: %v", err)
	}
	options := besideOptions(t, path)
	options.AcceptLostTail = true
	a = open(t, options)
	must(t, db, pay)
	if id := <-ids; id == second {
		t.Error("an id was given twice")
	}
	eventually(t, "settled", func() bool {
		return number(t, db, `SELECT coalesce(max(fence), 0) FROM outbox_deliveries WHERE state = 'dispatched'`) > fence+restoredFence
	})
	if n := number(t, db, `SELECT max(seq) FROM outbox_messages`); n != 3 {
		t.Errorf("the next message has the number %d, want 3", n)
	}
	closeNow(t, a)
	open(t, besideOptions(t, path))
}

func TestDatabasesThatCannotBeServed(t *testing.T) {
	t.Parallel()
	ours := besideSchema(schema(t))
	for name, tt := range map[string]struct {
		ddl  string
		want error
	}{
		"DELETE journal":   {ours + "PRAGMA journal_mode=DELETE", store.ErrJournal},
		"no outbox":        {"CREATE TABLE orders (id INTEGER)", store.ErrNotInstalled},
		"an appliance's":   {schema(t), store.ErrOwnFile},
		"a newer contract": {ours + "UPDATE posthorn_meta SET value = 99 WHERE name = 'schema_version'", store.ErrSchemaNewer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			_ = shop(t, path, tt.ddl).Close()
			a, err := Open(t.Context(), besideOptions(t, path))
			if !errors.Is(err, tt.want) {
				if a != nil {
					_ = a.Close(context.Background())
				}
				t.Errorf("answered %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := Open(t.Context(), besideOptions(t, filepath.Join(t.TempDir(), "none.db"))); !errors.Is(err, store.ErrMissing) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestPayloadsThatBreakTheirSchema: what another program staged is a dead letter that says where it is wrong, and holds up nothing.
func TestPayloadsThatBreakTheirSchema(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	const stage = `INSERT INTO outbox_messages(id, type, payload) VALUES (?, 'parcel-sent', ?)`
	for id, payload := range map[string]any{
		"breaks":   `{"parcel":"P-1","carrier":7,"sent_at":"2026-01-31T09:30:00Z"}`,
		"lacks":    `{"parcel":"P-1"}`,
		"no-json":  "parcel P-1 is on its way",
		"empty":    "",
		"bytes":    []byte{0xff, 0x00, 0xfe},
		"repeated": `{"parcel":"P-1","parcel":"P-2","carrier":"north","sent_at":"2026-01-31T09:30:00Z"}`,
	} {
		must(t, db, stage, id, payload)
	}
	must(t, db, pay)
	<-ids
	for id, says := range map[string]string{"breaks": "/carrier", "lacks": "carrier", "no-json": "must be JSON", "empty": "must be JSON", "bytes": "must be UTF-8", "repeated": "repeated"} {
		eventually(t, id+" is given up", func() bool {
			return number(t, db, `SELECT count(*) FROM outbox_status WHERE state = 'dead-letter' AND id = '`+id+`'`) == 1
		})
		var class, text string
		if err := db.QueryRow(`SELECT failure_class, last_error FROM outbox_records WHERE id = ?`, id).Scan(&class, &text); err != nil {
			t.Fatal(err)
		}
		if class != "rejected" || !strings.Contains(text, says) {
			t.Errorf("%s: %s, %q", id, class, text)
		}
	}
}

// TestANoteThatAPowerCutEmptied is written again: else the control database would be taken for a database with messages of its own.
func TestANoteThatAPowerCutEmptied(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, besideName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := noteBeside(folder, "/srv/app.db"); err != nil {
		t.Fatal(err)
	}
	if noted, err := readBeside(folder); err != nil || noted != "/srv/app.db" {
		t.Errorf("noted %q: %v", noted, err)
	}
}

// TestAnOutboxThatLacksATriggerIsNotServed: without its fan-out a message would be kept, and nobody would be told.
func TestAnOutboxThatLacksATriggerIsNotServed(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	must(t, db, `DROP TRIGGER outbox_messages_fan_out`)
	a, err := Open(t.Context(), besideOptions(t, path))
	if err == nil {
		_ = a.Close(t.Context())
	}
	if !errors.Is(err, errIncomplete) || !strings.Contains(err.Error(), "trigger outbox_messages_fan_out is missing") {
		t.Errorf("opened: %v", err)
	}
}
