package outbox

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Refusals: the command has changed nothing, and may be sent again.
var (
	// ErrQueueFull is answered at once when as many commands wait as the writer allows.
	ErrQueueFull = errors.New("the writer's queue is full")
	// ErrDeadline is answered to a command whose deadline passed before it was started.
	ErrDeadline = errors.New("the command's deadline passed before it was started")
	// ErrStoreBusy is answered when another process held the database for longer than the busy timeout.
	ErrStoreBusy = errors.New("the database is held by another process")
	// ErrStoreFull is answered when the disk, or the database's size limit, has no room.
	ErrStoreFull = errors.New("the database has no room left")
	// ErrStoreIO is answered when the database could not be read or written before its COMMIT.
	ErrStoreIO = errors.New("the database cannot be read or written")
)

// Mistakes of a command: it has changed nothing, and the commands beside it are untouched.
var (
	// ErrNestedCommand is answered to a command sent from inside a command: it would wait for itself.
	ErrNestedCommand = errors.New("a command cannot be sent from inside a command")
	// ErrTxLost is answered to a command that ended the transaction it ran in, which belongs to the whole group.
	ErrTxLost = errors.New("the command ended the writer's transaction")
	// ErrTxOwned is what Commit and Rollback of a Tx answer: a command is rolled back by the error that it returns.
	ErrTxOwned = errors.New("the transaction belongs to the writer; return an error to roll the command back")
	// ErrCommandPanicked is answered to a command that panicked.
	ErrCommandPanicked = errors.New("the command panicked")
)

// errCommandExited marks a command that ended its goroutine (runtime.Goexit, or FailNow in a test). Nobody is answered it: the sender's
// goroutine ends too.
var errCommandExited = errors.New("the command ended its goroutine")

// Ends: the writer has stopped for good and answers nothing but this.
var (
	// ErrInDoubt is answered when a COMMIT failed in a way that leaves open whether it will be found after the database is opened
	// again. The process should end: only reopening the file tells.
	ErrInDoubt = errors.New("the outcome of a COMMIT is in doubt")
	// ErrCorrupt is answered when SQLite calls the file malformed, or no database.
	ErrCorrupt = errors.New("the database file is damaged")
	// ErrClosed is answered after Close.
	ErrClosed = errors.New("the writer is closed")
)

// sqliteCode finds the SQLite result code that matters most in an error: any code outranks a constraint's, since after a constraint
// alone the transaction is known to be whole.
func sqliteCode(err error) (code int, found bool) {
	for err != nil {
		if e, ok := err.(*sqlite.Error); ok { //nolint:errorlint // this is the walk that errors.As would do, through every branch
			return e.Code(), true
		}
		switch wrapped := err.(type) { //nolint:errorlint // the same walk
		case interface{ Unwrap() error }:
			err = wrapped.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range wrapped.Unwrap() {
				if c, ok := sqliteCode(branch); ok && (!found || primary(code) == sqlite3.SQLITE_CONSTRAINT) {
					code, found = c, true
				}
			}
			return code, found
		default:
			return 0, false
		}
	}
	return 0, false
}

// primary strips the extension from a SQLite result code.
func primary(code int) int { return code & 0xff }

// storeError names the state of the store that an error of SQLite tells of, and keeps the error itself.
func storeError(err error) error {
	code, found := sqliteCode(err)
	if !found {
		return err
	}
	var kind error
	switch primary(code) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		kind = ErrStoreBusy
	case sqlite3.SQLITE_FULL:
		kind = ErrStoreFull
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
		kind = ErrStoreIO
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		kind = ErrCorrupt
	default:
		return err
	}
	if errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// refusal says why a command was not started, for a context that has ended.
func refusal(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrDeadline, cause)
	}
	return fmt.Errorf("the command was not started: %w", cause)
}
