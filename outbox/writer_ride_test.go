package outbox

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// tableBed has a table that the commands of a test write to, and one whose rows are judged by the COMMIT.
func tableBed(t *testing.T) *bed {
	b := newBed(t, "thing-done")
	b.do(t, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `CREATE TABLE ledger (id INTEGER PRIMARY KEY) STRICT;
			CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES ledger DEFERRABLE INITIALLY DEFERRED) STRICT`)
		return err
	})
	return b
}

func addRow(id int) Command {
	return func(ctx context.Context, tx *Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO ledger VALUES (?)`, id)
		return err
	}
}

// orphanRow is refused by the COMMIT.
func orphanRow(ctx context.Context, tx *Tx) error {
	_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO child(parent) VALUES (-1)`)
	return err
}

func ledgerOf(t *testing.T, b *bed) (ids []int) {
	t.Helper()
	if err := b.read.NewRaw(`SELECT id FROM ledger ORDER BY id`).Scan(t.Context(), &ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestARiderSharesTheCommitOfAGroup(t *testing.T) {
	t.Parallel()
	b := tableBed(t)
	commits := 0
	b.writer.OnCommit(func() { commits++ })
	noted := false
	c := b.writer.hitch(func(ctx context.Context, tx *Tx) error {
		tx.AfterCommit(func() { noted = true })
		return addRow(2)(ctx, tx)
	})
	if err := b.writer.Do(t.Context(), func(context.Context, *Tx) error { return errors.New("refused") }); err == nil {
		t.Error("a refused command was acknowledged")
	}
	if err := b.writer.Between(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if got := ledgerOf(t, b); len(got) > 0 || commits > 0 {
		t.Errorf("the rider made a group of its own: %v", got)
	}
	b.do(t, addRow(1))
	if taken, err := b.writer.alight(c); !taken || err != nil || !noted {
		t.Errorf("taken %t, %v, noted %t", taken, err, noted)
	}
	b.do(t, addRow(3))
	if got := ledgerOf(t, b); !slices.Equal(got, []int{1, 2, 3}) || commits != 2 {
		t.Errorf("%v after %d commits", got, commits)
	}
}

func TestARiderThatAlightsNeverRuns(t *testing.T) {
	t.Parallel()
	b := tableBed(t)
	if taken, err := b.writer.alight(b.writer.hitch(addRow(2))); taken || err != nil {
		t.Errorf("taken %t, %v", taken, err)
	}
	c := b.writer.hitch(addRow(3))
	b.do(t, func(ctx context.Context, tx *Tx) error {
		tx.noRide = true
		return addRow(1)(ctx, tx)
	})
	if taken, err := b.writer.alight(c); taken || err != nil {
		t.Errorf("beside one that wants no rider: taken %t, %v", taken, err)
	}
	if got := ledgerOf(t, b); !slices.Equal(got, []int{1}) {
		t.Errorf("the file holds %v", got)
	}
}

// TestARiderSpoilsNothing has riders do what no command may: whoever they ride with is acknowledged, once.
func TestARiderSpoilsNothing(t *testing.T) {
	t.Parallel()
	run := func(query string) Command {
		return func(ctx context.Context, tx *Tx) error {
			_, err := tx.Tx.Tx.ExecContext(ctx, query)
			return err
		}
	}
	for name, c := range map[string]struct {
		fn  Command
		err error // nil: any
	}{
		"refuses":           {func(context.Context, *Tx) error { return errStale }, errStale},
		"breaks a rule":     {addRow(1), nil},
		"panics":            {func(context.Context, *Tx) error { panic("rider") }, ErrCommandPanicked},
		"speaks no SQL":     {run("SELEKT"), nil},
		"rolls back":        {run("ROLLBACK"), ErrTxLost},
		"commits":           {run("INSERT INTO ledger VALUES (9); COMMIT"), nil},
		"fails its COMMIT":  {orphanRow, nil},
		"sends from inside": {func(ctx context.Context, tx *Tx) error { return tx.Commit() }, ErrTxOwned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tableBed(t)
			seat := b.writer.hitch(func(ctx context.Context, tx *Tx) error {
				if err := addRow(8)(ctx, tx); err != nil {
					return err
				}
				return c.fn(ctx, tx)
			})
			b.do(t, addRow(1))
			taken, err := b.writer.alight(seat)
			if !taken || err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("taken %t, answered %v", taken, err)
			}
			b.do(t, addRow(2))
			if got := ledgerOf(t, b); !slices.Equal(got, []int{1, 2}) {
				t.Errorf("the file holds %v", got)
			}
		})
	}
}

// TestARiderRunsAgain: a rider of a group that cannot be committed is run again, alone, as every other command of it.
func TestARiderRunsAgain(t *testing.T) {
	t.Parallel()
	b := tableBed(t)
	runs := 0
	seat := b.writer.hitch(func(ctx context.Context, tx *Tx) error {
		runs++
		return addRow(2)(ctx, tx)
	})
	if err := b.writer.Do(t.Context(), orphanRow); err == nil {
		t.Error("a broken rule was committed")
	}
	if taken, err := b.writer.alight(seat); !taken || err != nil || runs != 2 {
		t.Errorf("taken %t, %v, run %d times", taken, err, runs)
	}
	if got := ledgerOf(t, b); !slices.Equal(got, []int{2}) {
		t.Errorf("the file holds %v", got)
	}
}

func TestARiderOfAWriterThatEnds(t *testing.T) {
	t.Parallel()
	b := tableBed(t)
	seat := b.writer.hitch(addRow(1))
	if err := b.writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if taken, err := b.writer.alight(seat); taken || err != nil {
		t.Errorf("after Close: taken %t, %v", taken, err)
	}
	if seat = b.writer.hitch(addRow(1)); seat != nil {
		t.Error("a closed writer takes a rider")
	}
	if taken, err := b.writer.alight(seat); taken || err != nil {
		t.Errorf("one that never rode: taken %t, %v", taken, err)
	}
	b = tableBed(t)
	seat = b.writer.hitch(addRow(1))
	b.writer.Fail(ErrRewound)
	if taken, err := b.writer.alight(seat); !taken || !errors.Is(err, ErrRewound) {
		t.Errorf("after Fail: taken %t, %v", taken, err)
	}
}
