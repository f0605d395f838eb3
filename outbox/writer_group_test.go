package outbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// TestTxAfterItsEnd uses a Tx that was kept, which can change nothing while no command runs.
func TestTxAfterItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
	var kept *outbox.Tx
	if err := w.Do(t.Context(), func(_ context.Context, tx *outbox.Tx) error {
		kept = tx
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := plain(t.Context(), kept, "INSERT INTO ledger VALUES (1, 1)"); err == nil {
		t.Error("a Tx wrote after its end")
	}
	if err := w.Do(t.Context(), insert(2)); err != nil {
		t.Fatal(err)
	}
	if got := ledger(t, path); !slices.Equal(got, []int{2}) {
		t.Errorf("the file holds %v, want [2]", got)
	}
}

func TestHooksMayPanic(t *testing.T) {
	t.Parallel()
	w := startWriter(t, openWriterDB(t), outbox.WriterConfig{})
	calls := 0
	w.OnCommit(func() { panic("hook") })
	w.OnCommit(func() { calls++ })
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		tx.AfterCommit(func() { panic("after") })
		tx.AfterCommit(func() {
			// The sender's context is free to send again.
			if err := w.Do(t.Context(), insert(2)); err != nil {
				t.Error(err)
			}
		})
		return insertRow(ctx, tx, 1)
	}); err != nil {
		t.Error(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls != 2 {
		t.Errorf("the second hook was called %d times, want 2", calls)
	}
}

func TestBetweenGroups(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{GroupTime: time.Hour})
	other := openWriterFile(t, path)
	var order []string
	note := func(what string) outbox.Command {
		return func(ctx context.Context, tx *outbox.Tx) error {
			order = append(order, what)
			return plain(ctx, tx, "INSERT INTO ledger(amount) VALUES (1)")
		}
	}
	errs := sentTogether(t, w,
		func() error { return w.Do(context.Background(), note("queued")) },
		func() error { return w.First(context.Background(), note("first")) },
		func() error {
			return w.Between(context.Background(), func(ctx context.Context) error {
				order = append(order, "between")
				if err := w.Do(ctx, note("nested")); !errors.Is(err, outbox.ErrNestedCommand) {
					t.Errorf("a command inside was answered %v", err)
				}
				_, err := other.ExecContext(ctx, "INSERT INTO ledger(amount) VALUES (1)")
				return err
			})
		},
		func() error { return w.First(context.Background(), note("second")) })
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if got := strings.Join(order, " "); got != "first between second queued" {
		t.Errorf("the order was %s", got)
	}
	if err := w.Between(t.Context(), func(context.Context) error { return errBusiness }); !errors.Is(err, errBusiness) {
		t.Errorf("answered %v", err)
	}
	if err := w.Between(t.Context(), func(context.Context) error { panic("between") }); !errors.Is(err, outbox.ErrCommandPanicked) {
		t.Errorf("answered %v", err)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	w := startWriter(t, openWriterDB(t), outbox.WriterConfig{GroupTime: time.Hour, GroupMax: 5})
	var commits atomic.Int32
	w.OnCommit(func() { commits.Add(1) })
	var commands []outbox.Command
	for i := range 20 {
		commands = append(commands, insert(i))
	}
	if err := errors.Join(together(t, w, commands...)...); err != nil {
		t.Error(err)
	}
	if got := commits.Load(); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
	w = startWriter(t, openWriterDB(t), outbox.WriterConfig{GroupTime: 1})
	commits.Store(0)
	w.OnCommit(func() { commits.Add(1) })
	if err := errors.Join(together(t, w, commands...)...); err != nil {
		t.Error(err)
	}
	if got := commits.Load(); got != 20 {
		t.Errorf("%d commits, want 20", got)
	}
}
