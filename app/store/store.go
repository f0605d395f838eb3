package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/outbox/mutant"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// Options say which file to open, and how.
type Options struct {
	// Path is the database file. Required.
	Path string
	// Schema is SQL that is applied in one transaction; it must leave a file that has it already as it is.
	Schema string
	// SchemaVersion is the version of Schema. A file with a higher one in posthorn_meta is refused. 0 neither checks nor writes it.
	SchemaVersion int
	// Steps are the migrations that lead from an earlier version to this one.
	Steps []outbox.Step
	// Create makes the file, and its folder, when there is none. Without it, a missing file is ErrMissing.
	Create bool
	// Guest: the file belongs to another program. It must be in WAL mode and hold the outbox already; nothing about the file is changed.
	Guest bool
	// Control, unless nil, is a second file that belongs to the first. It is made when there is none.
	Control *Control
	// AcceptLostTail: a file of one's own may be behind its mark. Store.Lost then tells by how much.
	AcceptLostTail bool
	// Readers bounds the reader pool. Defaults to GOMAXPROCS, and is never more.
	Readers int
	// BusyTimeout is how long a connection waits for another process. Defaults to 5 s.
	BusyTimeout time.Duration
	// CheckpointPages is how many pages are written between two checkpoints in the background. Defaults to 4,000.
	CheckpointPages int
	// Writer configures the writer.
	Writer outbox.WriterConfig
	// Logger is told of what a caller cannot be told. Defaults to silence.
	Logger *slog.Logger
}

func (opt *Options) fill() error {
	if opt.Path == "" {
		return errors.New("open database: no path given")
	}
	if opt.Guest && opt.Create {
		return errors.New("open database: a guest makes no database")
	}
	if opt.Control != nil {
		opt.Writer.TwoFiles = true
	}
	if most := runtime.GOMAXPROCS(0); opt.Readers <= 0 || opt.Readers > most {
		opt.Readers = most
	}
	if opt.BusyTimeout <= 0 {
		opt.BusyTimeout = 5 * time.Second
	}
	if opt.CheckpointPages <= 0 {
		opt.CheckpointPages = checkpointPages
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Writer.Logger == nil {
		opt.Writer.Logger = opt.Logger
	}
	return nil
}

// Store is an open database file.
type Store struct {
	// Writer is the only way to write to it.
	Writer *outbox.Writer
	// Read is a pool of query-only connections.
	Read *bun.DB
	// Upkeep is one connection that keeps house. Its transactions take the write lock: short ones only.
	Upkeep *bun.DB

	file   *file
	guest  bool
	lost   *LostTail
	mark   *mark // nil: none is kept
	wal    walWatch
	write  *bun.DB
	logger *slog.Logger

	checkpoint *checkpointer
	closing    sync.Once
	closed     error
}

// Open opens a database file, creates it where asked to, and applies the schema. Nothing in an existing file is changed before it is
// known to be a database that this binary understands.
func Open(ctx context.Context, opt Options) (_ *Store, err error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	marked, lost, err := opt.findMark()
	if err != nil {
		return nil, err
	}
	f, err := findFile(opt.Path, opt.Create)
	if err != nil {
		return nil, err
	}
	f.marked = marked > 0
	if mode := f.info.Mode().Perm(); opt.Create && mode&0o077 != 0 {
		opt.Logger.Warn("database file can be read by others", "path", f.path, "mode", mode.String())
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open %s: %w", f.path, openError(err))
		}
	}()
	f.guest = opt.Guest
	if f.info.Size() > 0 || f.guest {
		found, err := f.probe(ctx, &opt)
		if err != nil {
			return nil, err
		}
		if lost, err = opt.compare(marked, found); err != nil {
			return nil, err
		}
	}
	if opt.Control != nil {
		if f.attached, err = opt.Control.prepare(ctx, &opt); err != nil {
			return nil, err
		}
	}
	opened := &Store{file: f, guest: opt.Guest, logger: opt.Logger, lost: lost}
	defer func() {
		if err != nil {
			_ = opened.closePools() // err says what matters
		}
	}()
	for _, p := range []struct {
		into **bun.DB
		use  use
		size int
	}{
		{&opened.write, writing, 1},
		{&opened.Upkeep, upkeep, 1},
		{&opened.Read, reading, opt.Readers},
	} {
		if *p.into, err = openPool(ctx, f, p.use, p.size, opt.BusyTimeout); err != nil {
			return nil, err
		}
		if p.use == writing && !opt.Guest {
			if err := applySchema(ctx, opened.write.DB, &opt); err != nil {
				return nil, err
			}
		}
	}
	opened.wal.path = f.path + "-wal"
	if err := opened.Verify(); err != nil {
		return nil, err
	}
	if opt.keepsMark() {
		found, err := commits(ctx, opened.Read.DB)
		if err != nil {
			return nil, err
		}
		if opened.mark, err = openMark(f.path+markSuffix, max(found, marked), opt.Logger); err != nil {
			return nil, err
		}
		opt.Writer.Mark = opened.mark.write
	}
	if opened.Writer, err = outbox.NewWriter(opened.write, opt.Writer); err != nil {
		return nil, err
	}
	opened.checkpoint = startCheckpointer(opened, opt.CheckpointPages)
	return opened, nil
}

func openPool(ctx context.Context, f *file, u use, size int, busy time.Duration) (*bun.DB, error) {
	connector, err := newConnector(f, u, busy)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	// The first connection is opened now: what is wrong with the file is known before anything is promised.
	if err := pool.PingContext(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return bun.NewDB(pool, sqlitedialect.New()), nil
}

// Path tells where the database file is: absolute, without symbolic links.
func (s *Store) Path() string { return s.file.path }

// Verify looks whether the path still leads to the files that are open. After ErrReplaced nothing more should be acknowledged: it
// would go to a file that nobody can find. Verify itself changes nothing; call Writer.Fail.
func (s *Store) Verify() error {
	if mutant.FileUnwatched {
		return nil
	}
	if err := s.file.verify(); err != nil {
		return err
	}
	return s.wal.verify()
}

// Integrity has SQLite look through the whole file. It takes long on a large one.
func (s *Store) Integrity(ctx context.Context) error {
	rows, err := s.Read.DB.QueryContext(ctx, "PRAGMA quick_check(10)")
	if err != nil {
		return fmt.Errorf("check integrity: %w", openError(err))
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return fmt.Errorf("check integrity: %w", openError(err))
		}
		found = append(found, line)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("check integrity: %w", openError(err))
	}
	if len(found) != 1 || found[0] != "ok" {
		return fmt.Errorf("%w: %q", ErrIntegrity, found)
	}
	return nil
}

// Close runs the commands that wait, writes the WAL back and closes the file. After the writer has failed it only lets go: the process
// should end rather than go on with the file.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *Store) close(ctx context.Context) error {
	var errs []error
	if err := s.Writer.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	s.checkpoint.stop()
	if err := s.Read.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close readers: %w", err))
	}
	if s.Writer.Err() == nil && len(errs) == 0 {
		mode := Truncate
		if s.guest {
			mode = Passive // its owner may be at work
		}
		// Its failure loses nothing: what the WAL holds is committed, and found at the next start.
		if _, err := s.Checkpoint(context.WithoutCancel(ctx), mode); err != nil {
			s.logger.Warn("last checkpoint failed", "error", err)
		}
	}
	if err := s.closePools(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Store) closePools() error {
	var errs []error
	for _, p := range []*bun.DB{s.Read, s.Upkeep, s.write} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.mark != nil {
		errs = append(errs, s.mark.close())
	}
	return errors.Join(errs...)
}

// walWatch knows the WAL file, which stays where it is for as long as a connection is open. Without it, what was acknowledged since the
// last checkpoint would be gone.
type walWatch struct {
	path string
	mu   sync.Mutex
	info os.FileInfo
}

func (w *walWatch) verify() error {
	info, err := os.Stat(w.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrNotExist):
		if w.info == nil {
			return nil
		}
		return fmt.Errorf("%w: %s is gone", ErrReplaced, w.path)
	case err != nil:
		return fmt.Errorf("look at WAL: %w", err)
	case w.info == nil:
		w.info = info
	case !os.SameFile(w.info, info):
		return fmt.Errorf("%w: %s is another file now", ErrReplaced, w.path)
	}
	return nil
}
