package destinations

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	admin    = access.Principal{Actor: "token:boss", Tenant: "main", Role: access.Admin, TokenID: "tok_boss"}
	operator = access.Principal{Actor: "token:op", Tenant: "main", Role: access.Operator, TokenID: "tok_op"}
	viewer   = access.Principal{Actor: "token:eye", Tenant: "main", Role: access.Viewer, TokenID: "tok_eye"}
	stranger = access.Principal{Actor: "token:far", Tenant: "far", Role: access.Admin, TokenID: "tok_far"}
)

// store is a database that outlives the beds on it.
type store struct {
	path string
	key  *Key
}

func newStore(t *testing.T) store {
	t.Helper()
	folder := t.TempDir()
	key, err := CreateKey(filepath.Join(folder, "posthorn.key"))
	if err != nil {
		t.Fatal(err)
	}
	return store{path: filepath.Join(folder, "posthorn.db"), key: key}
}

// bed is one boot.
type bed struct {
	*Service
	writer     *outbox.Writer
	dispatcher *outbox.Dispatcher
	db         *sql.DB
	stop       func()
}

func (st store) boot(t *testing.T, change func(*Config)) *bed {
	t.Helper()
	schema, err := os.ReadFile("../../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	dsn := "file:" + st.path + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"
	write, err := sql.Open("sqlite", dsn+"&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	write.SetMaxOpenConns(1)
	if _, err := write.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	read, err := sql.Open("sqlite", dsn+"&_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{db: read}
	readers := bun.NewDB(read, sqlitedialect.New())
	if b.writer, err = outbox.NewWriter(bun.NewDB(write, sqlitedialect.New()), outbox.WriterConfig{}); err != nil {
		t.Fatal(err)
	}
	if b.dispatcher, err = outbox.NewDispatcher(outbox.Config{Writer: b.writer, Read: readers}); err != nil {
		t.Fatal(err)
	}
	policy, err := egress.ParseAllow([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Mediator: mediator.New(mediator.Config{Writer: b.writer, Read: readers}), Writer: b.writer, Read: readers, Dispatcher: b.dispatcher,
		Key: st.key, Egress: policy, Defaults: Defaults{WebhookConcurrency: 16, FileConcurrency: 1, Timeout: 15 * time.Second, RetryAfterCap: time.Hour,
			PullConcurrency: 256, PullBatch: 100, PullWait: 30 * time.Second, PullCap: time.Hour}}
	if change != nil {
		change(&config)
	}
	b.Service = New(config)
	b.do(t, func(ctx context.Context, tx *outbox.Tx) error {
		return outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "order-placed", SchemaVersion: 1}})
	})
	if err := b.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = b.dispatcher.Stop(ctx)
		b.Close()
		_ = b.writer.Close(context.Background())
		_ = read.Close()
		_ = write.Close()
	})
	t.Cleanup(b.stop)
	return b
}

func (b *bed) do(t *testing.T, fn outbox.Command) {
	t.Helper()
	if err := b.writer.Do(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) stage(t *testing.T, tenant outbox.TenantID) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *outbox.Tx) error {
		_, err := outbox.Stage(ctx, tx, outbox.Message{Type: "order-placed", Tenant: tenant, Payload: []byte(`{}`)})
		return err
	})
}

func (b *bed) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := b.db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const countState = `SELECT count(*) FROM outbox_deliveries WHERE handler = ? AND state = ?`

func as(t *testing.T, by access.Principal) context.Context {
	t.Helper()
	return access.With(t.Context(), by)
}

// eventually waits for what the test's own actions bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

// receiver answers deliveries with a status, and counts them.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	received int
	headers  http.Header
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.received++
		r.headers = request.Header.Clone()
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

func webhookTo(url string) NewDestination {
	return NewDestination{Name: "shop", Kind: Webhook, URL: url, Types: []string{"order-*"}}
}
