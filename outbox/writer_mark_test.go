package outbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/outbox"
)

// TestCommitsAreNumbered: a COMMIT that changes something has the next number, which is told before anybody is answered; one that changes nothing,
// and a group that is undone, has none.
func TestCommitsAreNumbered(t *testing.T) {
	t.Parallel()
	db := openWriterDB(t)
	if _, err := db.ExecContext(t.Context(), metaTable); err != nil {
		t.Fatal(err)
	}
	var told []int64
	w := startWriter(t, db, outbox.WriterConfig{Mark: func(commit int64) { told = append(told, commit) }})
	for _, query := range []string{
		`INSERT INTO ledger VALUES (1, 1)`, `SELECT count(*) FROM ledger`, `INSERT INTO ledger VALUES (2, -1)`, `SELECT 1`, `UPDATE ledger SET amount = 5 WHERE id = 1`,
	} {
		before := len(told)
		err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
			_, err := tx.Tx.ExecContext(ctx, query)
			return err
		})
		if err == nil && !strings.HasPrefix(query, "SELECT") && len(told) == before {
			t.Errorf("%s was answered before its number was told", query)
		}
	}
	if want := []int64{1, 2}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	var kept int64
	if err := w.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT value FROM posthorn_meta WHERE name = 'commits'`).Scan(&kept)
	}); err != nil || kept != 2 {
		t.Errorf("the file says %d (%v)", kept, err)
	}
}
