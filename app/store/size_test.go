package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/posthorn/posthorn/outbox"
)

func TestShrinkGivesFreePagesBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, testOptions(t, filepath.Join(t.TempDir(), "size.db")))
	do := func(query string) {
		t.Helper()
		err := s.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
			_, err := tx.Tx.Tx.ExecContext(ctx, query)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	do(`CREATE TABLE bulk (body BLOB)`)
	do(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 1000) INSERT INTO bulk SELECT zeroblob(4000) FROM i`)
	full, err := s.Size(t.Context())
	if err != nil || full.Used < 4_000_000 {
		t.Fatalf("size %+v, %v", full, err)
	}
	do(`DELETE FROM bulk`)
	empty, err := s.Size(t.Context())
	if err != nil || empty.Used > full.Used/4 || empty.Free < full.Used/2 {
		t.Fatalf("size after deletion %+v, %v", empty, err)
	}
	if given, err := s.Shrink(t.Context(), 100); err != nil || given != 100 {
		t.Errorf("gave %d pages back, %v; want 100", given, err)
	}
	if _, err := s.Shrink(t.Context(), 1_000_000); err != nil {
		t.Fatal(err)
	}
	left, err := s.Size(t.Context())
	if err != nil || left.Free != 0 || left.Used > empty.Used {
		t.Errorf("size at the end %+v, %v", left, err)
	}
	if _, err := s.Checkpoint(t.Context(), Truncate); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Size() > full.Used/4 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}
