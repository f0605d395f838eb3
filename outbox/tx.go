package outbox

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
)

// Command is one unit of change. It runs in a savepoint of its own inside the transaction that it shares with its neighbours; an
// error undoes it alone.
//
// A command does nothing but its own SQL through tx: while it runs, every other writer waits. It may run more than once, when a
// neighbour spoils the shared transaction, so whatever it assigns outside itself it assigns anew on each run. It closes its rows
// and keeps neither ctx nor tx.
type Command func(ctx context.Context, tx *Tx) error

// Tx is one command's view of the group's transaction. The embedded bun.Tx builds queries, its *sql.Tx runs plain SQL, and Stmt
// gives what a hot path needs: statements that are prepared already.
type Tx struct {
	bun.Tx
	// Now is the one time of the group: UTC, whole microseconds, without a monotonic part.
	Now time.Time

	conn   *writerConn
	after  []func()
	noRide bool // what the command changes is noted in memory after its commit: a turn in the same group would come before the note
}

// Stmt returns the prepared statement for a query, bound to this transaction. It is prepared once and kept for the next command
// that asks for the same text; do not close it. Texts put together from values do not belong here: the writer keeps a few hundred.
func (tx *Tx) Stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	return tx.conn.stmt(ctx, query)
}

// AfterCommit has fn called once the group's COMMIT has succeeded, and only then. It is called on the goroutine that sent the
// command, before Do returns there, so however long it takes, the writer is already at its next group. Give it the sender's
// context, not the command's.
func (tx *Tx) AfterCommit(fn func()) {
	tx.after = append(tx.after, fn)
}

// Commit always fails: the transaction belongs to the writer.
func (tx *Tx) Commit() error { return ErrTxOwned }

// Rollback always fails: a command is rolled back by the error that it returns.
func (tx *Tx) Rollback() error { return ErrTxOwned }

// commandContext is the context a command runs in: the values of its sender, but neither its deadline nor its end, since SQLite
// answers an interrupted write by rolling back the whole transaction, neighbours included. It marks what is sent from inside.
type commandContext struct {
	context.Context
	over atomic.Bool
}

type commandMark struct{}

func (c *commandContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *commandContext) Done() <-chan struct{}       { return nil }
func (c *commandContext) Err() error                  { return nil }

func (c *commandContext) Value(key any) any {
	if _, ok := key.(commandMark); ok && !c.over.Load() {
		return c
	}
	return c.Context.Value(key)
}
