package store

import (
	"context"
	"fmt"
)

// Size is how much room a database takes.
type Size struct {
	// Used is what holds something, Free what the file keeps for the next rows; together they are the file. Bytes.
	Used, Free int64
}

// Size reads how much room the database takes. The WAL, which has a bound of its own, is not in it.
func (s *Store) Size(ctx context.Context) (Size, error) {
	var pages, free, bytes int64
	err := s.Read.DB.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).
		Scan(&pages, &free, &bytes)
	if err != nil {
		return Size{}, fmt.Errorf("read size of database: %w", openError(err))
	}
	return Size{Used: (pages - free) * bytes, Free: free * bytes}, nil
}

// Shrink gives up to so many free pages at the end of the file back to the file system, and says how many. It does nothing for a file that
// was not made for it: that cannot be switched on later. It takes the write lock for as long as it runs, so ask for few.
func (s *Store) Shrink(ctx context.Context, pages int) (given int, err error) {
	var mode, before, after int
	if err := s.Upkeep.DB.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&mode); err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	const incremental = 2
	if mode != incremental {
		return 0, nil
	}
	if err := s.Upkeep.DB.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&before); err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	if before == 0 {
		return 0, nil
	}
	// The pragma moves one page for each row that is asked for.
	rows, err := s.Upkeep.DB.QueryContext(context.WithoutCancel(ctx), fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, min(pages, before)))
	if err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	for rows.Next() {
	}
	if err := rows.Close(); err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	if err := s.Upkeep.DB.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&after); err != nil {
		return 0, fmt.Errorf("shrink database: %w", openError(err))
	}
	return before - after, nil
}
