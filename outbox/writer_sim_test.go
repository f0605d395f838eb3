package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"pgregory.net/rapid"
)

// deed is what a simulated command does beside adding its own row and counting itself.
type deed struct {
	name string
	// acknowledged says what the answer must be. Whatever is not acknowledged must not be in the file.
	acknowledged bool
	act          func(ctx context.Context, w *outbox.Writer, tx *outbox.Tx, id int) error
}

var deeds = []deed{
	{"nothing more", true, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { return nil }},
	{"nothing more", true, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { return nil }},
	{"nothing more", true, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { return nil }},
	{"swallowed constraint", true, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		_ = insertRow(ctx, tx, id)
		return nil
	}},
	{"swallowed SQL error", true, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		_ = plain(ctx, tx, "SELECT nothing FROM nowhere")
		return nil
	}},
	{"refused nested command", true, func(ctx context.Context, w *outbox.Writer, _ *outbox.Tx, id int) error {
		if err := w.Do(ctx, insert(-id)); !errors.Is(err, outbox.ErrNestedCommand) {
			return fmt.Errorf("a nested command was answered %w", err)
		}
		return nil
	}},
	{"savepoint of its own, left open", true, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		_, err := tx.Tx.BeginTx(ctx, nil)
		return err
	}},
	{"rows left open", true, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		rows, err := tx.Tx.Tx.QueryContext(ctx, "SELECT id FROM ledger") //nolint:rowserrcheck,sqlclosecheck // the mistake under test
		if err == nil {
			rows.Next()
		}
		return err
	}},
	{"business error", false, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { return errBusiness }},
	{"business error", false, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { return errBusiness }},
	{"constraint", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		return insertRow(ctx, tx, id)
	}},
	{"deferred constraint", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		return plain(ctx, tx, "INSERT INTO child(parent) VALUES (-1)")
	}},
	{"SQL error", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		return fmt.Errorf("wrapped: %w", plain(ctx, tx, "SELECT nothing FROM nowhere"))
	}},
	{"panic", false, func(context.Context, *outbox.Writer, *outbox.Tx, int) error { panic("simulated") }},
	{"end of its goroutine", false, func(context.Context, *outbox.Writer, *outbox.Tx, int) error {
		runtime.Goexit()
		return nil
	}},
	{"OR ROLLBACK", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		return plain(ctx, tx, fmt.Sprintf("INSERT OR ROLLBACK INTO ledger VALUES (%d, 1)", id))
	}},
	{"OR ROLLBACK, swallowed", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		_ = plain(ctx, tx, fmt.Sprintf("INSERT OR ROLLBACK INTO ledger VALUES (%d, 1)", id))
		_ = insertRow(ctx, tx, id)
		return nil
	}},
	{"COMMIT", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		return plain(ctx, tx, "COMMIT")
	}},
	{"COMMIT and BEGIN, swallowed", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		_ = plain(ctx, tx, "COMMIT")
		_ = plain(ctx, tx, "BEGIN IMMEDIATE")
		_ = insertRow(ctx, tx, id)
		return nil
	}},
	{"ROLLBACK", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		return plain(ctx, tx, "ROLLBACK")
	}},
	{"ROLLBACK and a transaction of its own", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, id int) error {
		_ = plain(ctx, tx, "ROLLBACK")
		_ = insertRow(ctx, tx, id)
		_ = plain(ctx, tx, "BEGIN; COMMIT; BEGIN")
		_ = insertRow(ctx, tx, id)
		return nil
	}},
	{"Commit of the sql.Tx", false, func(_ context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		_ = tx.Tx.Commit()
		return nil
	}},
	{"Rollback of the sql.Tx", false, func(_ context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error { return tx.Tx.Rollback() }},
	{"interrupted write", false, func(ctx context.Context, _ *outbox.Writer, tx *outbox.Tx, _ int) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		return plain(ctx, tx, "INSERT INTO posted WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n) SELECT i, x'' FROM n")
	}},
}

// The ways of sending a simulated command.
const (
	sendPlainly   = iota
	sendFirst     // ahead of the queue
	sendTooLate   // its deadline has passed when its turn comes
	sendAndLeave  // its caller leaves while it runs
	sendLeaving   // its caller leaves at any time
	sendVarieties // how many there are
)

// TestWriterSimulation sends random commands in random groups, and looks after each round, by another connection, whether the file
// holds what was acknowledged and nothing else.
func TestWriterSimulation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openWriterFile(t, path)
	w := startWriter(t, db, outbox.WriterConfig{GroupTime: time.Hour})
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		return plain(ctx, tx, "INSERT INTO ledger VALUES (0, 0)")
	}); err != nil {
		t.Fatal(err)
	}
	lastID := 0
	want := map[int]bool{0: true}
	rapid.Check(t, func(rt *rapid.T) {
		type plan struct{ deed, send int }
		plans := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) plan {
			return plan{rapid.IntRange(0, len(deeds)-1).Draw(rt, "deed"), rapid.IntRange(0, sendVarieties-1).Draw(rt, "send")}
		}), 1, 12).Draw(rt, "plans")
		var mu sync.Mutex
		after := map[int]int{}
		started, held := make(chan struct{}), make(chan struct{})
		holding := make(chan error, 1)
		go func() {
			var once sync.Once
			holding <- w.First(context.Background(), func(context.Context, *outbox.Tx) error {
				once.Do(func() { close(started); <-held })
				return nil
			})
		}()
		<-started
		errs := slices.Repeat([]error{errNoAnswer}, len(plans))
		late, expire := context.WithCancelCause(t.Context())
		defer expire(nil)
		var wg sync.WaitGroup
		for i, p := range plans {
			id := lastID + 1 + i
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			if p.send == sendTooLate {
				ctx = late
			}
			command := func(ctx context.Context, tx *outbox.Tx) error {
				tx.AfterCommit(func() {
					mu.Lock()
					defer mu.Unlock()
					after[id]++
				})
				if err := insertRow(ctx, tx, id); err != nil {
					return err
				}
				if p.send == sendAndLeave {
					leave()
				}
				if err := plain(ctx, tx, "UPDATE ledger SET amount = amount + 1 WHERE id = 0"); err != nil {
					return err
				}
				return deeds[p.deed].act(ctx, w, tx, id)
			}
			wg.Go(func() {
				if p.send == sendFirst {
					errs[i] = w.First(ctx, command)
				} else {
					errs[i] = w.Do(ctx, command)
				}
			})
			if p.send == sendLeaving {
				go leave()
			} else {
				for waiting := w.Waiting(); waiting == 0; waiting = w.Waiting() {
					runtime.Gosched()
				}
			}
		}
		expire(context.DeadlineExceeded)
		close(held)
		wg.Wait()
		if err := <-holding; err != nil {
			rt.Fatalf("the command that held the group: %v", err)
		}
		for i, p := range plans {
			id, err := lastID+1+i, errs[i]
			switch left := errors.Is(err, context.Canceled); {
			case p.send == sendTooLate:
				if !errors.Is(err, outbox.ErrDeadline) {
					rt.Errorf("%s, sent too late, was answered %v", deeds[p.deed].name, err)
				}
			case p.send == sendLeaving && left, p.send == sendAndLeave && left: // before it was started, or before it was run again
			case deeds[p.deed].acknowledged != (err == nil):
				rt.Errorf("%s was answered %v", deeds[p.deed].name, err)
			}
			if err == nil {
				want[id] = true
			}
			mu.Lock()
			if calls := after[id]; calls == 1 != (err == nil) || calls > 1 {
				rt.Errorf("%s was answered %v, and its after-commit function was called %d times", deeds[p.deed].name, err, calls)
			}
			mu.Unlock()
		}
		lastID += len(plans)
		if got := ledger(t, path); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			rt.Fatalf("the file does not hold what was acknowledged: %v", difference(got, want))
		}
		if got := counted(t, path); got != len(want)-1 {
			rt.Fatalf("%d commands were counted, %d acknowledged", got, len(want)-1)
		}
	})
}

func counted(t *testing.T, path string) (n int) {
	t.Helper()
	db := openWriterFile(t, path)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT amount FROM ledger WHERE id = 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func difference(got []int, want map[int]bool) string {
	var extra, missing []int
	for _, id := range got {
		if !want[id] {
			extra = append(extra, id)
		}
	}
	for id := range want {
		if !slices.Contains(got, id) {
			missing = append(missing, id)
		}
	}
	return fmt.Sprintf("refused but there %v, acknowledged but missing %v", extra, missing)
}
