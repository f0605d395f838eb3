package upkeep_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/app/upkeep"
	"github.com/posthorn/posthorn/outbox"
)

// ping is a command that changes nothing.
type ping struct{}

func (ping) Validate() error                  { return nil }
func (ping) Authorize(access.Principal) error { return nil }

func TestARoundKeepsHouse(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile(filepath.Join("..", "..", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "posthorn.db"), Schema: string(schema), SchemaVersion: outbox.SchemaVersion, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	set, err := records.Load(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	override := func(id string, value records.Scalar) {
		t.Helper()
		if err := set.Override(map[string]records.Override{id: {Value: value, Observation: "a test"}}); err != nil {
			t.Fatal(err)
		}
	}
	override("retention-dispatched", "0s")
	override("size-budget", "16MiB")
	dispatcher, err := outbox.NewDispatcher(outbox.Config{Writer: db.Writer, Read: db.Read})
	if err != nil {
		t.Fatal(err)
	}
	m := mediator.New(mediator.Config{Writer: db.Writer, Read: db.Read, KeepAnswers: time.Nanosecond})
	keeper, err := upkeep.New(upkeep.Config{Store: db, Dispatcher: dispatcher, Mediator: m, Records: func() *records.Set { return set }})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		if err := outbox.DeclareTypes(ctx, tx, []outbox.TypeVersion{{Type: "thing-done", SchemaVersion: 1}}); err != nil {
			return err
		}
		for i := range 300 {
			payload := fmt.Appendf(nil, `"%0100000d"`, i)
			if _, err := outbox.Stage(ctx, tx, outbox.Message{Type: "thing-done", Payload: payload}); err != nil {
				return err
			}
		}
		for i := range 700 { // more than one command removes, and one that is young
			at := time.Now().Add(-366 * 24 * time.Hour)
			if i == 699 {
				at = time.Now().Add(-364 * 24 * time.Hour)
			}
			if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO posthorn_audit(at, tenant, actor, action, subject) VALUES (?, 'main', 'os:mary', 'destination.pause', 'h')`,
				at.UnixMicro()); err != nil {
				return err
			}
		}
		_, err := tx.Tx.Tx.ExecContext(ctx, `UPDATE outbox_deliveries SET state = 'dispatched', attempt = 1, charged = 1, fence = 1, next_attempt_at = NULL,
			blocked = NULL, suppressed = 0, completed_at = 1 WHERE id > 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	by := access.With(t.Context(), access.LocalPrincipal())
	answer := func(struct{}) (mediator.Answer, error) { return mediator.Answer{Status: 200, Body: []byte(`{}`)}, nil }
	if _, err := mediator.SendOnce(by, m, []mediator.Receipt{mediator.KeyReceipt("k", sha256.Sum256(nil))}, ping{},
		func(context.Context, *mediator.UnitOfWork, ping) (struct{}, error) { return struct{}{}, nil }, answer); err != nil {
		t.Fatal(err)
	}
	before, err := db.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := db.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var messages, answers, entries int
	if err := db.Read.DB.QueryRow(`SELECT (SELECT count(*) FROM outbox_messages), (SELECT count(*) FROM posthorn_idempotency), (SELECT count(*) FROM posthorn_audit)`).
		Scan(&messages, &answers, &entries); err != nil {
		t.Fatal(err)
	}
	if messages != 1 || answers != 0 || entries != 1 {
		t.Errorf("%d messages, %d answers and %d entries of the audit are left, want the pending message, no answer and the young entry", messages, answers, entries)
	}
	if after.Used > before.Used/4 || after.Used+after.Free > before.Used*3/4 {
		t.Errorf("size %+v after %+v", after, before)
	}
	if used, limit := keeper.Usage(); used == 0 || limit != 16<<20 {
		t.Errorf("usage %d of %d", used, limit)
	}
}
