package app

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/cli"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// testOptions are those of an appliance that may send to this machine.
func testOptions(t *testing.T, dataDir string) Options {
	t.Helper()
	policy, err := egress.ParseAllow([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Build: Build{Schema: schema(t), Version: "test"}, DataDir: dataDir, Config: Config{policy: policy},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func open(t *testing.T, options Options) *Appliance {
	t.Helper()
	a, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	return a
}

func closeNow(t *testing.T, a *Appliance) {
	t.Helper()
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (a *Appliance) stage(ctx context.Context, eventType string) error {
	return a.store.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		_, err := outbox.Stage(ctx, tx, outbox.Message{Type: eventType, Payload: []byte(`{}`)})
		return err
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 4000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

func TestDataFolderIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "data")
	open(t, testOptions(t, folder))
	for name, want := range map[string]os.FileMode{".": 0o700, DatabaseName: 0o600, KeyName: 0o600, FilesName: 0o700} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestOneProcessForAFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := open(t, testOptions(t, folder))
	if _, err := Open(t.Context(), testOptions(t, folder)); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	closeNow(t, a)
	open(t, testOptions(t, folder))
}

func TestStagedWithoutDispatchIsDeliveredByTheNextStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	received := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("webhook-id") }))
	t.Cleanup(target.Close)
	options := testOptions(t, folder)
	options.NoDispatch = true
	a := open(t, options)
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Create(ctx, destinations.NewDestination{Name: "shop", Kind: destinations.Webhook, URL: target.URL, Types: []string{"parcel-*"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.stage(t.Context(), "parcel-sent"); err != nil {
		t.Fatal(err)
	}
	closeNow(t, a)
	a = open(t, options)
	backlog, err := a.dispatcher.Backlog(t.Context())
	if err != nil || backlog.Total.Pending != 1 || len(received) != 0 {
		t.Fatalf("backlog %+v, %v; %d received", backlog.Total, err, len(received))
	}
	closeNow(t, a)
	open(t, testOptions(t, folder))
	select {
	case id := <-received:
		if id == "" {
			t.Error("a delivery without an id")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("not delivered")
	}
}

func TestRecordsAreReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := open(t, testOptions(t, folder))
	if err := a.stage(t.Context(), "order-placed"); !errors.Is(err, outbox.ErrUndeclaredType) {
		t.Fatalf("stage what nobody declared: %v", err)
	}
	path, err := records.NewIntegrationEvent(folder, "order-placed", records.Authoritative, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.declarations.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.stage(t.Context(), "order-placed"); err != nil {
		t.Fatalf("stage what was declared: %v", err)
	}
	if err := os.WriteFile(path, []byte("---\nnonsense: 1\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.declarations.Reload(t.Context()); err == nil {
		t.Error("a wrong record is no error")
	}
	if _, known := a.Records().IntegrationEvent("order-placed"); !known {
		t.Error("a wrong record took a declaration away")
	}
	if err := a.stage(t.Context(), "order-placed"); err != nil {
		t.Errorf("stage after a wrong record: %v", err)
	}
	closeNow(t, a)
	if _, err := Open(t.Context(), testOptions(t, folder)); err == nil || !strings.Contains(err.Error(), "order-placed.md") {
		t.Errorf("start with a wrong record: %v", err)
	}
}

func TestMissingKeyStopsTheStartOnlyWhenSomethingIsSealed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key := filepath.Join(folder, KeyName)
	a := open(t, testOptions(t, folder))
	closeNow(t, a)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	a = open(t, testOptions(t, folder))
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Create(ctx, destinations.NewDestination{Name: "shop", Kind: destinations.Webhook, URL: "https://example.com/", Types: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, a)
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), testOptions(t, folder))
	if !errors.Is(err, destinations.ErrNoKey) {
		t.Fatalf("start without the key: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("a new key was made over sealed secrets")
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	open(t, testOptions(t, folder))
}

func TestReplacedDatabaseEndsTheWriter(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a := open(t, testOptions(t, folder))
	path := filepath.Join(folder, DatabaseName)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	a.Verify()
	<-a.Failed()
	if err := a.stage(t.Context(), "parcel-sent"); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("stage afterwards: %v", err)
	}
	err := a.Close(context.Background())
	var coded interface{ ExitCode() int }
	if !errors.As(exit(err), &coded) || coded.ExitCode() != cli.ExitStorage {
		t.Errorf("close: %v", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	makeNewer(t, folder)
	if _, err := Open(t.Context(), testOptions(t, folder)); !errors.Is(err, store.ErrSchemaNewer) {
		t.Errorf("open: %v", err)
	}
}

// makeNewer leaves a data folder as a later version of Posthorn would.
func makeNewer(t *testing.T, folder string) {
	t.Helper()
	a := open(t, testOptions(t, folder))
	closeNow(t, a)
	db, err := sql.Open("sqlite", filepath.Join(folder, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE posthorn_meta SET value = 99 WHERE name = 'schema_version'`); err != nil {
		t.Fatal(err)
	}
}
