package guest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// backup writes a checked copy of the database into a folder, for its owner alone, and answers its path once it is on the disk.
func backup(ctx context.Context, db *sql.DB, folder, name string, now time.Time) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	path = filepath.Join(folder, fmt.Sprintf("%s.before-%s", name, now.UTC().Format("20060102T150405.000Z")))
	temporary := path + ".unfinished"
	// SQLite writes into an empty file as well as into none, and leaves its mode.
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, temporary); err != nil {
		return "", fmt.Errorf("back up to %s: %w", folder, named(err))
	}
	if err := check(ctx, temporary); err != nil {
		return "", fmt.Errorf("back up to %s: %w", folder, err)
	}
	if err := errors.Join(sync(temporary), os.Rename(temporary, path), sync(folder)); err != nil {
		return "", fmt.Errorf("back up to %s: %w", folder, err)
	}
	return path, nil
}

// check has SQLite look through a copy.
func check(ctx context.Context, path string) error {
	copied, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	verdict, err := pragma(ctx, copied, "quick_check(1)")
	if err = errors.Join(err, copied.Close()); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: the copy says %q", ErrNotADatabase, verdict)
	}
	return nil
}

// sync brings a file or folder to the disk; SQLite has closed the file.
func sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
