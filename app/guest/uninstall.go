package guest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// Removal is what was taken away.
type Removal struct {
	// Backup is the copy that was made before.
	Backup string
	// Objects counts tables, indexes, triggers and views; Unfinished the deliveries that were not made.
	Objects, Unfinished int
}

const countUnfinished = `SELECT count(*) FROM outbox_deliveries WHERE completed_at IS NULL`

// Uninstall takes the outbox out of a database: what the contract names, and nothing else. Unfinished deliveries are a refusal, unless force is set.
func Uninstall(ctx context.Context, options Options, force bool, now time.Time) (r Removal, err error) {
	path, err := resolve(options.DB)
	if err != nil {
		return r, err
	}
	lock, err := store.TakeLock(ctx, path, lockWait)
	if err != nil {
		return r, err
	}
	defer func() { _ = lock.Release() }()
	db, err := openFile(ctx, path)
	if err != nil {
		return r, err
	}
	defer func() { _ = db.Close() }()
	version, err := outbox.Version(ctx, db)
	if err != nil {
		return r, err
	}
	switch {
	case version == 0:
		return r, ErrNotInstalled
	case version > options.Version:
		return r, fmt.Errorf("%w: its contract is version %d, this binary knows version %d", outbox.ErrSchemaNewer, version, options.Version)
	}
	ours, err := contract(ctx, options.Schema)
	if err != nil {
		return r, err
	}
	there, err := readObjects(ctx, db)
	if err != nil {
		return r, err
	}
	if slices.Contains(there, object{"table", "posthorn_destinations"}) {
		return r, ErrOwnFile
	}
	if r.Backup, err = backup(ctx, db, options.Backups, fileName(path), now); err != nil {
		return r, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return r, fmt.Errorf("uninstall: %w", named(err))
	}
	defer func() { _ = tx.Rollback() }()
	// Counted in the transaction that takes them away, so that none is staged in between.
	if err := tx.QueryRowContext(ctx, countUnfinished).Scan(&r.Unfinished); err != nil {
		return r, fmt.Errorf("uninstall: %w", named(err))
	}
	if r.Unfinished > 0 && !force {
		return r, fmt.Errorf("%w: %d", ErrUnfinished, r.Unfinished)
	}
	// Triggers first, which guard the rows; then views, and the tables with their indexes, those that refer to others first.
	for _, kind := range []string{"trigger", "view", "table"} {
		for _, o := range slices.Backward(ours) {
			if o.kind != kind || !slices.Contains(there, o) {
				continue
			}
			// The name is the contract's own.
			if _, err := tx.ExecContext(ctx, "DROP "+kind+" "+o.name); err != nil {
				return r, fmt.Errorf("take %s away: %w", o, named(err))
			}
		}
	}
	for _, o := range ours {
		if slices.Contains(there, o) {
			r.Objects++
		}
	}
	if err := tx.Commit(); err != nil {
		return r, fmt.Errorf("uninstall: %w", named(err))
	}
	return r, nil
}
