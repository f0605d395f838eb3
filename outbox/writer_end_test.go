package outbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// TestCloseDrains closes a writer while commands wait.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "w.db")
		w := startWriter(t, openWriterFile(t, path), outbox.WriterConfig{})
		started, held := make(chan struct{}), make(chan struct{})
		answers := make(chan error, 3)
		go func() {
			answers <- w.Do(context.Background(), func(ctx context.Context, tx *outbox.Tx) error {
				close(started)
				<-held
				return insertRow(ctx, tx, 1)
			})
		}()
		<-started
		for i := range 2 {
			go func() { answers <- w.Do(context.Background(), insert(2+i)) }()
		}
		for w.Waiting() < 2 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		closing := make(chan error, 1)
		go func() { closing <- w.Close(ctx) }()
		want := []int{1, 2, 3}
		if !patient {
			cancel()
			if err := <-closing; !errors.Is(err, context.Canceled) {
				t.Errorf("an impatient Close answered %v", err)
			}
			want = []int{1}
		}
		close(held)
		refused := 0
		for range 3 {
			if err := <-answers; errors.Is(err, outbox.ErrClosed) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		<-w.Done()
		cancel()
		if err := w.Err(); err != nil {
			t.Errorf("the end of a closed writer is %v", err)
		}
		if got := ledger(t, path); !slices.Equal(got, want) || len(want)+refused != 3 {
			t.Errorf("the file holds %v, want %v; %d refused", got, want, refused)
		}
	}
}

// TestDeadlines runs on the bubble's clock.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "w.db")
		db := openWriterFile(t, path)
		w, err := outbox.NewWriter(db, outbox.WriterConfig{})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		go func() {
			if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
				close(started)
				time.Sleep(time.Minute)
				return insertRow(ctx, tx, 1)
			}); err != nil {
				t.Errorf("a command that was started in time: %v", err)
			}
		}()
		<-started
		from := time.Now()
		if err := w.Do(t.Context(), insert(2)); !errors.Is(err, outbox.ErrDeadline) || time.Since(from) != 5*time.Second {
			t.Errorf("by the default deadline: %v after %v", err, time.Since(from))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		from = time.Now()
		err = w.Do(ctx, insert(3))
		if !errors.Is(err, outbox.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || time.Since(from) != time.Second {
			t.Errorf("by the caller's deadline: %v after %v", err, time.Since(from))
		}
		if err := w.First(t.Context(), insert(4)); err != nil {
			t.Errorf("a first command: %v", err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := ledger(t, path); !slices.Equal(got, []int{1, 4}) {
			t.Errorf("the file holds %v, want [1 4]", got)
		}
		db.Close()
	})
}
