package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ForeignPoll says how often it is looked whether another program has committed to the database. The zero value does not look.
type ForeignPoll struct {
	// Busy is the wait while there are such commits.
	Busy time.Duration
	// Idle is what the wait eases to when there are none.
	Idle time.Duration
	// Share is the part of the time for which the dispatcher may hold the write lock while another program commits, and Pause the longest that it
	// leaves the lock alone for that after a turn of its own, and that it waits to go right behind a commit. Zero: it takes the lock whenever there
	// is something to do.
	Share float64
	Pause time.Duration
	// Changed, unless nil, is asked first: false says for certain that nothing was committed since it was asked before, which spares the look into
	// the database. It must not block.
	Changed func() bool
	// Committed, unless nil, is told each time that another program is seen to have committed. It must not block.
	Committed func()
}

// ErrRewound: the database went back to an earlier state while it was open, as when a copy is restored over it.
var ErrRewound = errors.New("the database went back to an earlier state while it was open")

// The version changes with each commit of another connection, and with none of its own (7 µs measured).
const readDataVersion = `PRAGMA main.data_version`

// The number is never given twice, so it falls only when the database is put back.
const readSequence = `SELECT coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'outbox_deliveries'), 0)`

// foreign is what is known of other programs' commits.
type foreign struct {
	version int64
	newest  DeliveryID // the last delivery that was made, at the last change
	changed bool
}

// look reads the version on the writer's own connection between two groups, when no transaction is open, and so no lock is held and no
// snapshot kept. Only after a foreign commit it reads more.
func (f *foreign) look(ctx context.Context, w *Writer) error {
	return w.send(ctx, func(ctx context.Context, _ *Tx) error {
		if err := w.conn.ready(ctx); err != nil {
			return err
		}
		version, err := f.read(ctx, &w.conn, readDataVersion)
		if err != nil {
			return err
		}
		if f.changed = version != f.version; !f.changed {
			return nil
		}
		newest, err := f.read(ctx, &w.conn, readSequence)
		if err != nil {
			return err
		}
		f.version, f.newest = version, DeliveryID(newest)
		return nil
	}, asBetween)
}

func (f *foreign) read(ctx context.Context, c *writerConn, query string) (value int64, err error) {
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	if err := stmt.QueryRowContext(ctx).Scan(&value); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("look for foreign commits: %w", err)
	}
	return value, nil
}

// watchForeign wakes the dispatcher when another program has staged something.
func (d *Dispatcher) watchForeign(ctx context.Context) {
	poll := d.config.Foreign
	wait := poll.Busy
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var f foreign
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.config.Writer.Done():
			return
		case <-timer.C:
		}
		if poll.Changed != nil && !poll.Changed() {
			wait = min(poll.Idle, wait+wait/4+1)
			timer.Reset(wait)
			continue
		}
		d.mu.Lock()
		cursor := d.cursor // before the look, since the writer's own commits move both
		d.mu.Unlock()
		err := f.look(ctx, d.config.Writer)
		switch {
		case err != nil || !f.changed:
			wait = min(poll.Idle, wait+wait/4+1)
		default:
			wait = poll.Busy
			d.sawCommit(time.Now())
			if poll.Committed != nil {
				poll.Committed()
			}
			if f.newest < cursor {
				d.config.Writer.Fail(fmt.Errorf("%w: delivery %d was seen, and the latest is %d now", ErrRewound, cursor, f.newest))
				return
			}
			if f.newest > cursor {
				d.Wake()
			}
		}
		timer.Reset(wait)
	}
}
