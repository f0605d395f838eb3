package app

import (
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
)

const shopHook = `{"name":"shop","kind":"webhook","types":["order-*"],"url":"`

// TestRunbookRecoverDeadLetters walks recover-dead-letters and replay, one after the other as the first says.
func TestRunbookRecoverDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	w.start()
	w.fill["NAME"] = "shop"
	w.post("/v1/destinations", shopHook+w.target+`"}`, http.StatusCreated)
	w.status.Store(http.StatusBadRequest)
	for _, id := range []string{"one", "two", "three"} {
		w.send(id, "")
		w.until(id, "shop", "dead-letter")
	}
	w.raised("alert-dead-letters", "recover-dead-letters")
	w.walk("recover-dead-letters", map[string]func(){"posthorn replay DELIVERY": func() { w.status.Store(http.StatusOK) }}, nil)
	w.until("three", "shop", "dispatched")
	w.raised("alert-dead-letters", "replay")
	w.walk("replay", map[string]func(){
		// A message that must not go out holds back the next of its key.
		"posthorn deliveries skip DELIVERY": func() {
			w.until("one", "shop", "dispatched")
			w.status.Store(http.StatusBadRequest)
			w.send("cancelled", `,"ordering_key":"parcels/1"`)
			w.until("cancelled", "shop", "dead-letter")
			w.send("held-back", `,"ordering_key":"parcels/1"`)
			w.until("held-back", "shop", "pending")
			w.until("cancelled", "shop", "dead-letter")
			w.status.Store(http.StatusOK)
		},
		"posthorn messages resend ID": func() { w.until("held-back", "shop", "dispatched") },
	}, nil)
	w.until("two", "shop", "dispatched")
	if audit := w.get("/v1/audit"); strings.Count(audit, "the receiver was mended") != 3 || !strings.Contains(audit, "the parcel was cancelled") || !strings.Contains(audit, "the receiver lost it") {
		t.Errorf("audit: %s", audit)
	}
	// What was passed over stays a dead letter; it is let go of by replaying it once its reason is gone.
	w.line("posthorn replay --all --reason 'the parcel goes out after all'", 0)
	w.cleared("alert-dead-letters")
}

// TestRunbookStoreOutage holds the database's lock, as another program may, and ends the process besides.
func TestRunbookStoreOutage(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	w.start()
	db, err := sql.Open("sqlite", filepath.Join(w.folder, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ready := func() (int, string) { return w.p.call(t, "", http.MethodGet, "/readyz", "") }
	gated := func() bool {
		code, text := ready()
		return code == http.StatusServiceUnavailable && strings.Contains(text, "store-busy") && strings.Contains(text, `"runbook":"store-outage"`)
	}
	eventually(t, "dispatch is gated", gated)
	w.raised("alert-store-outage", "store-outage")
	w.walk("store-outage", map[string]func(){
		"df -h DATA-DIR": func() {
			if !gated() {
				t.Error("the process says nothing of the outage")
			}
			if _, err := db.ExecContext(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it goes on by itself", func() bool { code, _ := ready(); return code == http.StatusOK })
			w.cleared("alert-store-outage")
		},
		"posthorn serve": func() {
			_ = w.p.Process.Kill()
			w.p.wait(t)
			w.p = nil
		},
	}, nil)
	if code, text := ready(); code != http.StatusOK {
		t.Errorf("ready: %d %s", code, text)
	}
}

// TestRunbookDiskFull: the database comes near its budget, and the operator allows more.
func TestRunbookDiskFull(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	w.settings["size-budget"] = `{value: 16MiB, observation: a small disk}`
	w.settings["alert-size-budget"] = `{value: 10%, observation: a test does not fill disks}`
	w.start()
	w.post("/v1/destinations", shopHook+w.target+`"}`, http.StatusCreated)
	w.post("/v1/destinations/shop/pause", `{"reason":"it grows"}`, http.StatusOK)
	for _, id := range []string{"one", "two"} {
		w.post("/v1/messages", `{"id":"`+id+`","type":"order-placed","payload":{"note":"`+strings.Repeat("x", 1_000_000)+`"}}`, http.StatusCreated)
	}
	w.start() // its size is looked at when it starts, and every minute
	w.raised("alert-size-budget", "disk-full")
	w.walk("disk-full", nil, nil)
	w.cleared("alert-size-budget")
	if text := w.get("/v1/settings"); !strings.Contains(text, "the week's peak was 5") {
		t.Errorf("the setting: %s", text)
	}
}

// TestRunbookClockUntrusted: a program that was built after what the clock shows holds what needs the time; once the clock is right, which is here
// the program that was built before it, all of it goes out.
func TestRunbookClockUntrusted(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	right := w.build
	w.start()
	w.post("/v1/destinations", shopHook+w.target+`"}`, http.StatusCreated)
	w.status.Store(http.StatusBadRequest)
	w.send("refused", "") // as too old
	w.until("refused", "shop", "dead-letter")
	w.build = filepath.Join(w.dir, "posthorn-of-2099")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.built=2099-01-01T00:00:00Z", "-o", w.build, "..").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	w.start()
	w.send("held", "")
	w.raised("alert-clock-untrusted", "clock-untrusted")
	w.until("held", "shop", "pending")
	w.status.Store(http.StatusOK)
	w.walk("clock-untrusted", map[string]func(){
		"posthorn replay --class rejected --dry-run": func() { w.build = right; w.start() },
	}, nil)
	w.until("held", "shop", "dispatched")
	w.until("refused", "shop", "dispatched")
	w.cleared("alert-clock-untrusted")
}

// lendingWalker is a walker with a branch that has lent nothing yet.
func lendingWalker(t *testing.T) *walker {
	t.Helper()
	w := newWalker(t)
	w.top += "\nlending: true"
	w.start()
	w.post("/v1/lending/members", `{"id":"M1","name":"Ada","email":"ada@example.org"}`, http.StatusCreated)
	for _, id := range []string{"C1", "C2", "C3"} {
		w.post("/v1/lending/copies", `{"id":"`+id+`","work":"moby-dick","title":"Moby-Dick"}`, http.StatusCreated)
	}
	return w
}

func (w *walker) borrow(id string) {
	w.Helper()
	w.post("/v1/lending/loans", `{"member":"M1","copy":"`+id+`"}`, http.StatusCreated)
}

// counted waits for the statistics to have so many loans.
func (w *walker) counted(loans string) {
	w.Helper()
	eventually(w.T, loans+" loans are counted", func() bool { return strings.Contains(w.get("/v1/lending/statistics"), `"borrowed":`+loans) })
}

// TestRunbookReadersBeforeWriters raises the version that is emitted.
func TestRunbookReadersBeforeWriters(t *testing.T) {
	t.Parallel()
	w := lendingWalker(t)
	w.borrow("C1")
	w.counted("1")
	w.walk("readers-before-writers", map[string]func(){
		"posthorn backlog": func() { w.borrow("C2"); w.counted("2") },
	}, nil)
	if list := w.get("/v1/messages?type=loan-borrowed"); !strings.Contains(list, `"schema_version":2`) || !strings.Contains(list, `"schema_version":1`) || strings.Contains(list, `"state":"pending"`) {
		t.Errorf("messages: %s", list)
	}
}

// TestRunbookRollback goes back to a program that lacks the second version, with one message of it pending and one a dead letter.
func TestRunbookRollback(t *testing.T) {
	t.Parallel()
	older := buildOlder(t)
	w := lendingWalker(t)
	w.path = filepath.Dir(older) + string(filepath.ListSeparator) + w.path
	w.settings["lending-loan-borrowed-version"] = `{value: 2, observation: every reader reads it}`
	w.start()
	w.post("/v1/destinations", strings.Replace(shopHook, "order-*", "loan-borrowed", 1)+w.target+`"}`, http.StatusCreated)
	latest := func() string {
		_, list, _ := strings.Cut(w.get("/v1/messages?type=loan-borrowed&limit=1"), `"id":"`)
		id, _, _ := strings.Cut(list, `"`)
		return id
	}
	w.status.Store(http.StatusBadRequest)
	w.borrow("C1")
	dead := latest()
	w.until(dead, "shop", "dead-letter")
	w.post("/v1/destinations/shop/pause", `{"reason":"its receiver is down"}`, http.StatusOK)
	w.status.Store(http.StatusOK)
	w.borrow("C2")
	pending := latest()
	w.counted("2")
	w.fill["TYPE"] = "loan-borrowed"
	w.fill["PAYLOAD"] = `'{"loan":"again","member":"M1","copy":"C2","work":"moby-dick","title":"Moby-Dick","due_at":"2030-01-01T00:00:00Z"}'`
	w.walk("rollback", map[string]func(){
		"posthorn rollback-check": func() {
			w.settings["lending-loan-borrowed-version"] = `{value: 1, observation: going back}`
			w.start()
		},
		"posthorn deliveries cancel DELIVERY": func() { w.until(pending, "shop", "pending") },
		"posthorn replay DELIVERY": func() {
			w.post("/v1/destinations/shop/resume", "", http.StatusOK)
			w.until(dead, "shop", "dead-letter")
		},
		"posthorn messages list --state pending": func() {
			w.until(dead, "shop", "dispatched")
			w.build = older
			w.start()
		},
	}, map[string]int{"posthorn rollback-check": cli.ExitFailed})
	w.counted("3") // what was staged again, which the older program reads
	w.until(pending, "shop", "dead-letter")
}

// TestRunbookRestore keeps a copy, loses the folder and goes back to the copy; then only an older database is to be had.
func TestRunbookRestore(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	w.start()
	w.fill["NAME"] = "shop"
	w.post("/v1/destinations", shopHook+w.target+`"}`, http.StatusCreated)
	w.post("/v1/destinations/shop/pause", `{"reason":"not yet"}`, http.StatusOK)
	w.send("one", "")
	w.stop()
	w.walk("restore", map[string]func(){
		"mv DATA-DIR": func() {
			w.send("after-the-copy", "")
			w.stop()
		},
		"posthorn serve --data-dir DATA-DIR --accept-lost-tail": func() {
			w.until("one", "shop", "pending")
			if code, _ := w.p.call(t, w.token, http.MethodGet, "/v1/messages/after-the-copy", ""); code != http.StatusNotFound {
				t.Errorf("a message that was staged after the copy: %d", code)
			}
			w.send("lost", "")
			w.stop()
			text, err := os.ReadFile(filepath.Join(w.fill["COPY"], DatabaseName))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.folder, DatabaseName), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := launch(t, w.folder).wait(t); code != cli.ExitIntegrity {
				t.Errorf("an older database alone: exit %d", code)
			}
		},
	}, nil)
	w.raised("alert-lost-tail", "restore")
	w.post("/v1/destinations/shop/resume", "", http.StatusOK)
	w.until("one", "shop", "dispatched")
}

// TestRunbookOutboxIncomplete drops the trigger that fans out, as a tool of the application's does, and stages without it.
func TestRunbookOutboxIncomplete(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	path, db := shopDB(t)
	w.fill["NAME"], w.fill["APP-DB"] = "shop", path
	w.status.Store(http.StatusOK)
	w.start("--db", path)
	w.post("/v1/destinations", shopHook+w.target+`"}`, http.StatusCreated)
	must(t, db, `DROP TRIGGER outbox_messages_fan_out`)
	must(t, db, `INSERT INTO outbox_messages(id, type, payload) VALUES ('bare', 'order-placed', '{"order":1}')`)
	w.raised("alert-outbox-incomplete", "outbox-incomplete")
	if ready := w.get("/readyz"); !strings.Contains(ready, `"degraded"`) || !strings.Contains(ready, `"outbox-incomplete"`) {
		t.Errorf("/readyz: %s", ready)
	}
	w.walk("outbox-incomplete", map[string]func(){
		"posthorn alerts list": func() { w.until("bare", "unrouted", "pending") },
	}, nil)
	w.until("bare", "shop", "dispatched")
	w.cleared("alert-outbox-incomplete")
}
