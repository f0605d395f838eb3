package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/posthorn/posthorn/outbox"
)

// Mode says how far a checkpoint goes.
type Mode string

const (
	// Passive writes back what it can without making anybody wait.
	Passive Mode = "PRAGMA wal_checkpoint(PASSIVE)"
	// Truncate waits for readers and writers, then cuts the WAL to nothing.
	Truncate Mode = "PRAGMA wal_checkpoint(TRUNCATE)"
)

const (
	// checkpointPages is the default of Options.CheckpointPages: with 100 commits take longer, and with 16,000 too.
	checkpointPages = 4000
	// resetAfter is how many of them may be in the WAL before it is begun anew rather than continued.
	resetAfter = 3
	// alarmAfter is how many of them only a reader who stays can bring about.
	alarmAfter = 16
)

// WAL is what a checkpoint found.
type WAL struct {
	Busy    bool // somebody was in the way
	Frames  int  // in the WAL
	Written int  // of them, back in the database
}

// Checkpoint writes the WAL back into the database.
func (s *Store) Checkpoint(ctx context.Context, mode Mode) (WAL, error) {
	return checkpoint(ctx, s.Upkeep.DB, mode)
}

func checkpoint(ctx context.Context, q querier, mode Mode) (WAL, error) {
	var wal WAL
	if err := q.QueryRowContext(ctx, string(mode)).Scan(&wal.Busy, &wal.Frames, &wal.Written); err != nil {
		return WAL{}, fmt.Errorf("checkpoint: %w", openError(err))
	}
	return wal, nil
}

// checkpointer writes the WAL back in the background, so that no caller's COMMIT has to.
type checkpointer struct {
	store  *Store
	pages  int
	wake   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
	at     atomic.Int64 // what the writer had written at the last checkpoint
	pace   pace         // of another program's commits
	alarm  bool
}

func startCheckpointer(s *Store, pages int) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{store: s, pages: pages, wake: make(chan struct{}, 1), cancel: cancel, pace: newPace(pages)}
	s.Writer.OnCommit(func() {
		if s.Writer.Written()-c.at.Load() >= int64(pages) {
			c.due()
		}
	})
	c.done.Go(func() { c.run(ctx) })
	return c
}

// due asks for a checkpoint, and does not wait for it.
func (c *checkpointer) due() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) stop() {
	c.cancel()
	c.done.Wait()
}

func (c *checkpointer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		written := c.store.Writer.Written()
		c.at.Store(written)
		wal, err := c.checkpoint(ctx)
		c.pace.learn(wal.Frames, written)
		switch {
		case ctx.Err() != nil, errors.Is(err, outbox.ErrClosed):
		case err != nil:
			c.store.logger.Warn("checkpoint failed", "error", err)
		case wal.Frames < alarmAfter*c.pages:
			c.alarm = false
		case !c.alarm:
			c.alarm = true
			c.store.logger.Warn("the WAL grows: a reader keeps an old snapshot open", "frames", wal.Frames, "written_back", wal.Written)
		}
	}
}

// checkpoint writes back what the WAL holds without making anybody wait. But the WAL is only begun anew by a commit that finds all of it
// written back, and under steady load there is always a commit more: 600 MB were seen after 20 seconds. So when the WAL has become long,
// the writer rests for the few frames that came in meanwhile.
func (c *checkpointer) checkpoint(ctx context.Context) (WAL, error) {
	// Its connection is taken before the writer rests, since a backup may have it for minutes.
	conn, err := c.store.Upkeep.DB.Conn(ctx)
	if err != nil {
		return WAL{}, fmt.Errorf("checkpoint: %w", err)
	}
	defer conn.Close()
	wal, err := checkpoint(context.WithoutCancel(ctx), conn, Passive)
	if err != nil || wal.Frames < resetAfter*c.pages || wal.Frames != wal.Written {
		return wal, err
	}
	err = c.store.Writer.Between(ctx, func(ctx context.Context) (err error) {
		wal, err = checkpoint(ctx, conn, Passive)
		return err
	})
	return wal, err
}
