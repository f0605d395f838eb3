package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// TestStoreFull fills a database up to its limit.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openWriterFile(t, path)
	if _, err := db.ExecContext(t.Context(), "PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	w := startWriter(t, db, outbox.WriterConfig{GroupTime: time.Hour})
	big := func(id int) outbox.Command {
		return func(ctx context.Context, tx *outbox.Tx) error {
			s, err := tx.Stmt(ctx, "INSERT INTO posted(id, payload) VALUES (?, zeroblob(100000))")
			if err != nil {
				return err
			}
			if _, err = s.ExecContext(ctx, id); err != nil {
				return err
			}
			return insertRow(ctx, tx, id)
		}
	}
	hidden := func(ctx context.Context, tx *outbox.Tx) error {
		return errors.Join(errBusiness, insertRow(ctx, tx, 1), big(5)(ctx, tx)) // behind a constraint
	}
	errs := together(t, w, insert(1), big(2), insert(3), big(4), hidden, insert(6))
	for i, want := range []error{nil, nil, nil, outbox.ErrStoreFull, outbox.ErrStoreFull, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("command %d was answered %v, want %v", i, errs[i], want)
		}
	}
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error { return plain(ctx, tx, "DELETE FROM posted") }); err != nil {
		t.Fatalf("make room: %v", err)
	}
	if err := w.Do(t.Context(), big(7)); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{1, 2, 3, 6, 7}) {
		t.Errorf("the file holds %v", got)
	}
}

func TestStoreBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	other, err := openWriterFile(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(1)); !errors.Is(err, outbox.ErrStoreBusy) {
		t.Errorf("answered %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(2)); err != nil {
		t.Errorf("when it is free again: %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{2}) {
		t.Errorf("the file holds %v, want [2]", got)
	}
}

// TestForgottenRows has a command leave rows open, which keep an old snapshot, while another process writes.
func TestForgottenRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	for i := range 10 {
		if err := w.Do(t.Context(), insert(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		rows, err := tx.Tx.Tx.QueryContext(ctx, "SELECT id FROM ledger") //nolint:rowserrcheck,sqlclosecheck // the mistake under test
		if err != nil {
			return err
		}
		rows.Next()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := openWriterFile(t, path).ExecContext(t.Context(), "DELETE FROM ledger WHERE id < 9"); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), insert(20)); err != nil {
		t.Errorf("answered %v", err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{9, 20}) {
		t.Errorf("the file holds %v, want [9 20]", got)
	}
}

// TestDamagedFile has a command find out that the file is damaged.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openWriterFile(t, path)
	if _, err := db.ExecContext(t.Context(), "INSERT INTO posted(payload) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT zeroblob(700) FROM n"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 40*4096), 20*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
	errs := togetherInDoubt(t, w, insert(1), func(ctx context.Context, tx *outbox.Tx) error { return plain(ctx, tx, "DELETE FROM posted") }, insert(2))
	for i, err := range errs[1:] {
		if !errors.Is(err, outbox.ErrCorrupt) {
			t.Errorf("command %d was answered %v", i, err)
		}
	}
	<-w.Done()
	if err := w.Err(); !errors.Is(err, outbox.ErrCorrupt) {
		t.Errorf("the writer's end is %v", err)
	}
	if got := ledger(t, path); len(got) != 0 {
		t.Errorf("the file holds %v", got)
	}
}
