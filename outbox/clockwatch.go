package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// jumpBound is how far ahead the clock may be of what the monotonic one says before retention no longer believes it.
	jumpBound = time.Hour
	// jumpPause is for how much uptime retention then removes nothing: time for somebody, or something, to set the clock right.
	jumpPause = 24 * time.Hour
	// clockSaved is how often the time is noted in the store. Not more often: an idle device writes nothing else.
	clockSaved = 15 * time.Minute
)

// clockWatch tells whether the wall clock jumped ahead: while the process runs, against the monotonic clock; across a restart, against the
// time that was noted last. The latter cannot be told from a process that was down so long, which then waits for nothing worse than a day.
type clockWatch struct {
	wall, at, saved time.Time
	left            time.Duration
	leaps           int64 // of the dispatcher's
}

const saveClock = `INSERT INTO posthorn_meta(name, value) VALUES ('retention_seen', ?), ('retention_pause', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// look returns for how much more uptime nothing may be removed.
func (c *clockWatch) look(ctx context.Context, config RetentionConfig) (time.Duration, error) {
	wall, at := config.Now().UTC().Round(0), time.Now()
	left, jumped := c.left, false
	if c.at.IsZero() {
		seen, paused, err := readClock(ctx, config)
		if err != nil {
			return 0, err
		}
		left, jumped = paused, !seen.IsZero() && wall.Sub(seen) > jumpBound && paused == 0
	} else {
		ran := at.Sub(c.at)
		left = max(0, left-ran)
		jumped = wall.Sub(c.wall)-ran > jumpBound
	}
	if config.Dispatcher != nil {
		// It has looked all the time, and seen what came and went in between.
		leaps := config.Dispatcher.leaps.Load()
		jumped, c.leaps = jumped || leaps > c.leaps, leaps
	}
	if jumped {
		left = jumpPause
		config.Logger.Warn("the clock is far ahead of what was seen last; nothing is removed for a while", "for", left)
	}
	if jumped || (left == 0) != (c.left == 0) || at.Sub(c.saved) > clockSaved {
		err := config.Writer.Do(ctx, func(ctx context.Context, tx *Tx) error {
			_, err := execCount(ctx, tx, saveClock, micros(wall), left.Microseconds())
			return err
		})
		if err != nil {
			return left, fmt.Errorf("note the time: %w", err)
		}
		c.saved = at
	}
	c.wall, c.at, c.left = wall, at, left
	return left, nil
}

// now carries on the time that was looked at: a jump behind the look makes nothing old in the round that it began.
func (c *clockWatch) now() time.Time { return c.wall.Add(time.Since(c.at)) }

func readClock(ctx context.Context, config RetentionConfig) (seen time.Time, paused time.Duration, err error) {
	values := [2]int64{}
	for i, name := range []string{"retention_seen", "retention_pause"} {
		err := config.Read.DB.QueryRowContext(ctx, `SELECT value FROM posthorn_meta WHERE name = ?`, name).Scan(&values[i])
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return seen, 0, fmt.Errorf("read noted time: %w", err)
		}
	}
	if values[0] != 0 {
		seen = fromMicros(values[0])
	}
	return seen, time.Duration(values[1]) * time.Microsecond, nil
}
