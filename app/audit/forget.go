package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// The entries have no index by time: they are in its order by their id, so the oldest are looked at and no more.
const deleteEntries = `DELETE FROM posthorn_audit WHERE id IN (SELECT id FROM (SELECT id, at FROM posthorn_audit ORDER BY id LIMIT ?) WHERE at < ?)`

// Forget removes entries that are older than a time, at most limit in this one command, and returns how many. The records of replays are the
// outbox's to remove.
func Forget(ctx context.Context, w *outbox.Writer, before time.Time, limit int) (forgotten int64, err error) {
	err = w.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		result, err := tx.Tx.Tx.ExecContext(ctx, deleteEntries, limit, before.UnixMicro())
		if err != nil {
			return err
		}
		forgotten, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old entries of the audit: %w", err)
	}
	return forgotten, nil
}
