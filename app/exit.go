package app

import (
	"errors"

	"github.com/posthorn/posthorn/app/cli"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// exitError is an error with what the process ends with: a code for programs and a hint for people.
type exitError struct {
	err  error
	code int
	hint string
}

// Error is the error's own sentence.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is what the process exits with.
func (e *exitError) ExitCode() int { return e.code }

// Hint says what to do.
func (e *exitError) Hint() string { return e.hint }

// acceptHint: fences begin above all that were given, and beside another program's database so do the numbers of messages.
const acceptHint = "keep a copy of the data folder as it is and put the newer file back; if going on without them is meant, as after a restore, start once with --accept-lost-tail: what the database still has pending is delivered, perhaps again, under the same ids"

// exits is the one place that says what an error of the appliance means for the process. The first row that fits holds.
var exits = []struct {
	is   error
	code int
	hint string
}{
	{errListen, cli.ExitUsage, ""},
	{store.ErrHeld, cli.ExitHeld, "one process delivers for a data folder; stop the other one, or name another folder with --data-dir"},
	{store.ErrSchemaNewer, cli.ExitNewer, "start the newer Posthorn again; to go back for good, restore a backup that this version made"},
	{outbox.ErrSchemaNewer, cli.ExitNewer, "start the newer Posthorn again; to go back for good, restore a backup that this version made"},
	{store.ErrLostTail, cli.ExitIntegrity, acceptHint},
	{ErrOlderCopy, cli.ExitIntegrity, acceptHint},
	{outbox.ErrRewound, cli.ExitIntegrity, "it was restored while Posthorn ran; start again, with --accept-lost-tail if that is meant"},
	{store.ErrJournal, cli.ExitFailed, "posthorn install --db FILE --wal changes it, once no other program has the file open; the application keeps working as before"},
	{store.ErrMissing, cli.ExitFailed, "--db names a database that another program has made already; is the path right?"},
	{store.ErrNotInstalled, cli.ExitFailed, "posthorn install --db FILE brings it in, after a backup; or run what `posthorn schema --beside` prints in a migration of your own"},
	{errIncomplete, cli.ExitFailed, "posthorn install --db FILE puts it back, after a backup; what was staged meanwhile is found at the next start, and kept for the handler unrouted"},
	{store.ErrOwnFile, cli.ExitFailed, "leave --db out, and name the folder with --data-dir"},
	{errOwnOnly, cli.ExitFailed, "take it out of posthorn.yaml, or run it in a Posthorn with a data folder of its own: the program beside takes in its own events"},
	{errFolder, cli.ExitFailed, "name another folder with --data-dir, or leave it and POSTHORN_DATA_DIR out: each database has its own, FILE.posthorn. If that one has a posthorn.db which only a command without --db made, move the file away"},
	{store.ErrReplaced, cli.ExitStorage, "nothing was acknowledged since; put the file back, or restore a backup, and start again"},
	{outbox.ErrInDoubt, cli.ExitStorage, "start again: what was committed is found, and the rest was never acknowledged; look at the disk first"},
	{outbox.ErrCorrupt, cli.ExitStorage, "look at the disk, then restore a backup"},
	{store.ErrIntegrity, cli.ExitIntegrity, "keep a copy of the file as it is, then restore a backup"},
	{store.ErrEncoding, cli.ExitIntegrity, ""},
	{store.ErrSetting, cli.ExitStorage, "the file lies on a file system that SQLite's WAL cannot use, such as a network share; move it to a local disk"},
	{outbox.ErrStoreFull, cli.ExitStorage, "make room on the disk and start again"},
	{outbox.ErrStoreIO, cli.ExitStorage, "look at the disk and the folder's owner, then start again"},
	{outbox.ErrStoreBusy, cli.ExitStorage, "another program holds a transaction open in the database; end it and start again"},
	{destinations.ErrNoKey, cli.ExitFailed, "the database has sealed secrets: restore posthorn.key beside it from where the database comes from"},
	{regular.ErrNotRegular, cli.ExitFailed, "put a file there, or move away what is in its place"},
	{destinations.ErrBadKey, cli.ExitFailed, "restore posthorn.key from a backup"},
}

// exit gives an error its code and hint. An error that has a code already keeps it.
func exit(err error) error {
	if err == nil {
		return nil
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return err
	}
	found := &exitError{err: err, code: cli.ExitFailed}
	for _, row := range exits {
		if errors.Is(err, row.is) {
			found.code, found.hint = row.code, row.hint
			break
		}
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		found.hint = hinted.Hint()
	}
	return found
}
