package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrMissing is answered when there is no database file and none is to be created.
	ErrMissing = errors.New("there is no database file")
	// ErrHeld is answered when another process holds the file's lock; the error is a *HeldError.
	ErrHeld = errors.New("the database is held by another process")
	// ErrSchemaNewer is answered when the file was written by a newer version of Posthorn.
	ErrSchemaNewer = errors.New("the database was written by a newer version of Posthorn")
	// ErrIntegrity is answered when the file is damaged, or is no database.
	ErrIntegrity = errors.New("the database file is damaged or is not a database")
	// ErrEncoding is answered when the file keeps text as UTF-16.
	ErrEncoding = errors.New("the database keeps text as UTF-16; Posthorn needs UTF-8")
	// ErrJournal is answered when another program's file is not in WAL mode.
	ErrJournal = errors.New("the database is not in WAL mode")
	// ErrNotInstalled is answered when another program's file does not have the outbox, or an earlier version of it.
	ErrNotInstalled = errors.New("the database does not have this version of the outbox")
	// ErrOwnFile is answered when the file given as another program's is one of Posthorn's own.
	ErrOwnFile = errors.New("the database is Posthorn's own, not another program's")
	// ErrSetting is answered when a setting of a connection did not take effect.
	ErrSetting = errors.New("a setting of the database did not take effect")
	// ErrReplaced is answered when the path no longer leads to the file that was opened.
	ErrReplaced = errors.New("the database file was removed or replaced while it was open")
)

// openError names what an error of SQLite says about the file, and keeps the error itself.
func openError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, ErrIntegrity) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	return err
}
