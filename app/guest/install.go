package guest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// Options say what is brought in, and where.
type Options struct {
	// DB is the other program's database.
	DB string
	// Schema is the contract's part for it, Version its version, and Steps the migrations that lead there.
	Schema  string
	Version int
	Steps   []outbox.Step
	// WAL allows the journal mode to be changed.
	WAL bool
	// Backups is the folder for the copy that is made before.
	Backups string
}

// Plan is what an installation will do. Close it.
type Plan struct {
	// Path is the database, From the version of the contract that it has; 0 for none.
	Path     string
	From, To int
	// WAL: the journal mode will be changed. Missing are the objects that will be made.
	WAL     bool
	Missing []string

	options Options
	db      *sql.DB
	lock    *store.Lock
}

// Nothing says that the database is as it should be.
func (p *Plan) Nothing() bool { return !p.WAL && len(p.Missing) == 0 && p.From == p.To }

// Look finds out what an installation has to do, and whether it may.
func Look(ctx context.Context, options Options) (_ *Plan, err error) {
	path, err := resolve(options.DB)
	if err != nil {
		return nil, err
	}
	p := &Plan{Path: path, To: options.Version, options: options}
	if p.db, err = openFile(ctx, path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	mode, err := pragma(ctx, p.db, "journal_mode")
	if err != nil {
		return nil, err
	}
	encoding, err := pragma(ctx, p.db, "encoding")
	if err != nil {
		return nil, err
	}
	p.WAL = mode != "wal"
	switch {
	case encoding != "utf-8":
		return nil, fmt.Errorf("%w: it says %s", ErrEncoding, encoding)
	case p.WAL && !options.WAL:
		return nil, fmt.Errorf("%w: its journal mode is %s", ErrJournal, mode)
	}
	return p, p.compare(ctx)
}

// compare tells what is missing from what is somebody else's.
func (p *Plan) compare(ctx context.Context) error {
	wanted, err := contract(ctx, p.options.Schema)
	if err != nil {
		return err
	}
	there, err := readObjects(ctx, p.db)
	if err != nil {
		return err
	}
	has := map[string]string{}
	for _, o := range there {
		has[strings.ToLower(o.name)] = o.kind
	}
	if has["posthorn_destinations"] != "" {
		return ErrOwnFile
	}
	if p.From, err = outbox.Version(ctx, p.db); err != nil {
		return fmt.Errorf("%w: its table posthorn_meta: %w", ErrNames, err)
	}
	if p.From > p.To {
		return fmt.Errorf("%w: its contract is version %d, this binary knows version %d", outbox.ErrSchemaNewer, p.From, p.To)
	}
	var foreign []string
	for _, o := range wanted {
		switch kind := has[o.name]; {
		case kind == "":
			p.Missing = append(p.Missing, o.String())
		case kind != o.kind, p.From == 0:
			foreign = append(foreign, kind+" "+o.name)
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%w: %s", ErrNames, strings.Join(foreign, ", "))
	}
	return nil
}

// lockWait is how long a command of the user's is waited for.
const lockWait = time.Second

// Install does what the plan says, after a backup, whose path it answers.
func (p *Plan) Install(ctx context.Context, now time.Time) (copied string, err error) {
	if p.Nothing() {
		return "", nil
	}
	if p.lock, err = store.TakeLock(ctx, p.Path, lockWait); err != nil {
		return "", err
	}
	if copied, err = backup(ctx, p.db, p.options.Backups, fileName(p.Path), now); err != nil {
		return "", err
	}
	if p.WAL {
		mode, err := pragma(ctx, p.db, "journal_mode=WAL")
		if err != nil || mode != "wal" {
			return copied, errors.Join(fmt.Errorf("%w: the journal mode stays %s while another program has the file open", ErrBusy, mode), err)
		}
	}
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return copied, fmt.Errorf("install: %w", named(err))
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := outbox.Migrate(ctx, tx, p.options.Schema, p.To, p.options.Steps); err != nil {
		return copied, fmt.Errorf("install: %w", named(err))
	}
	if err := tx.Commit(); err != nil {
		return copied, fmt.Errorf("install: %w", named(err))
	}
	return copied, nil
}

// Close lets go of the database.
func (p *Plan) Close() error {
	var errs []error
	if p.db != nil {
		errs = append(errs, p.db.Close())
	}
	if p.lock != nil {
		errs = append(errs, p.lock.Release())
	}
	return errors.Join(errs...)
}

func fileName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Kinds counts the missing objects by kind: "12 tables, 9 indexes".
func (p *Plan) Kinds() string {
	counts := map[string]int{}
	for _, o := range p.Missing {
		kind, _, _ := strings.Cut(o, " ")
		counts[kind]++
	}
	var parts []string
	for kind, n := range counts {
		plural := map[bool]string{true: "s", false: ""}[n != 1]
		if kind == "index" && n != 1 {
			plural = "es"
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", n, kind, plural))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
