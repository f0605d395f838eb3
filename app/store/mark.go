package store

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/outbox/mutant"
)

// A flipped bit in the WAL, or a WAL that is cut or gone, takes acknowledged commits away, and SQLite finds nothing wrong with what is left. So
// a mark is kept outside of it: the number of the last COMMIT. It is written once that COMMIT is on the disk and before anybody is answered,
// and not synced: a kill leaves it to the kernel, which writes it out, and a power cut may leave an older one. It never says more than is there.

// ErrLostTail is answered when the database is behind its mark. The error is a *LostTail.
var ErrLostTail = errors.New("the database has lost its latest commits")

// LostTail says how much is lost. It is an ErrLostTail.
type LostTail struct {
	Marked int64 // the last COMMIT that was on the disk
	Found  int64 // the last one that is there
}

// Error says how much is lost.
func (e *LostTail) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("%v: the mark is at commit %d, and the database is gone or empty", ErrLostTail, e.Marked)
	}
	return fmt.Sprintf("%v: it had come to commit %d, and is at commit %d now", ErrLostTail, e.Marked, e.Found)
}

// Unwrap makes a LostTail an ErrLostTail.
func (e *LostTail) Unwrap() error { return ErrLostTail }

const markSuffix = ".mark"

const markForm = "posthorn mark: commit %020d check %08x\n"

func markLine(commit int64) string {
	return fmt.Sprintf(markForm, commit, crc32.ChecksumIEEE(fmt.Appendf(nil, "%020d", commit)))
}

// mark is the mark of a file while it is open.
type mark struct {
	file   *os.File
	at     atomic.Int64
	failed atomic.Bool
	logger *slog.Logger
}

// maxMark bounds a file that holds one line.
const maxMark = 4 << 10

// readMark reads a mark; 0 when there is none, or none that can be believed, as after a power cut.
func readMark(path string) (commit int64, err error) {
	text, err := regular.Read(path, maxMark)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read mark: %w", err)
	}
	var sum uint32
	if _, err := fmt.Sscanf(string(text), markForm, &commit, &sum); err != nil || commit < 0 || markLine(commit) != string(text) {
		return 0, nil //nolint:nilerr // it says nothing
	}
	return commit, nil
}

// openMark opens a mark for writing. commit is how far the database is.
func openMark(path string, commit int64, logger *slog.Logger) (*mark, error) {
	file, err := regular.Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open mark: %w", err)
	}
	m := &mark{file: file, logger: logger}
	m.write(commit)
	return m, nil
}

// write moves the mark on. A mark that cannot be written stays behind, where it does no harm.
func (m *mark) write(commit int64) {
	if commit <= m.at.Load() {
		return
	}
	m.at.Store(commit)
	if _, err := m.file.WriteAt([]byte(markLine(commit)), 0); err != nil && !m.failed.Swap(true) {
		m.logger.Warn("mark not written: a loss of what comes now would not be noticed", "path", m.file.Name(), "error", err)
	}
}

func (m *mark) close() error {
	return errors.Join(m.file.Sync(), m.file.Close())
}

const readCommits = `SELECT coalesce((SELECT value FROM posthorn_meta WHERE name = 'commits'), 0)`

// commits reads how many commits a file has had; 0 when it is fresh.
func commits(ctx context.Context, q querier) (count int64, err error) {
	version, err := schemaVersion(ctx, q)
	if err != nil || version == 0 {
		return 0, err
	}
	if err := q.QueryRowContext(ctx, readCommits).Scan(&count); err != nil {
		return 0, fmt.Errorf("read commits: %w", err)
	}
	return count, nil
}

// findMark reads the mark before anything is opened or made. A file that is gone or empty has lost all that it had; 0: nothing is marked.
func (opt *Options) findMark() (marked int64, lost *LostTail, err error) {
	if !opt.keepsMark() {
		return 0, nil, nil
	}
	path, err := resolve(opt.Path)
	if err != nil {
		return 0, nil, fmt.Errorf("find database: %w", err)
	}
	if err := regular.Check(path); err != nil {
		return 0, nil, fmt.Errorf("find database: %w", err)
	}
	if marked, err = readMark(path + markSuffix); err != nil {
		return 0, nil, err
	}
	if info, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Size() == 0 {
		lost, err = opt.compare(marked, 0)
	}
	return marked, lost, err
}

// keepsMark: only in a file that nobody else writes to are all commits counted.
func (opt *Options) keepsMark() bool { return !opt.Guest && opt.SchemaVersion > 0 }

// compare refuses a file that is behind its mark, unless that is accepted.
func (opt *Options) compare(marked, found int64) (*LostTail, error) {
	if found >= marked || mutant.MarkUnread {
		return nil, nil
	}
	lost := &LostTail{Marked: marked, Found: found}
	if !opt.AcceptLostTail {
		return nil, lost
	}
	return lost, nil
}

// Lost tells what had been lost when the file was opened, and was accepted; nil: nothing.
func (s *Store) Lost() *LostTail { return s.lost }

const (
	raiseCommits = `INSERT INTO posthorn_meta(name, value) VALUES ('commits', ?1) ON CONFLICT DO UPDATE SET value = max(value, ?1)`
	raiseFence   = `UPDATE posthorn_meta SET value = value + ? WHERE name = 'fence'`
)

// Accept goes on after a loss: the count rises to the mark, so that the next start finds nothing, and the fence by lead, beyond all that can
// have been given out and is forgotten.
func (e *LostTail) Accept(ctx context.Context, tx *outbox.Tx, lead int64) error {
	if _, err := tx.Tx.Tx.ExecContext(ctx, raiseCommits, e.Marked); err != nil {
		return fmt.Errorf("accept lost tail: %w", err)
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, raiseFence, lead); err != nil {
		return fmt.Errorf("accept lost tail: %w", err)
	}
	return nil
}
