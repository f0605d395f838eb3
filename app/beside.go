package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/posthorn/posthorn/app/guest"
	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// besideName is the file of a data folder that names the database which the folder lies beside.
const besideName = "beside"

// maxBeside bounds it: no path is as long.
const maxBeside = 64 << 10

// errFolder: a data folder and a database do not belong together.
var errFolder = errors.New("the data folder belongs elsewhere")

// errOwnOnly: the configuration asks for what needs tables that are in files of our own only.
var errOwnOnly = errors.New("beside another program's database there is none of it")

// errIncomplete: the contract in another program's database lacks something.
var errIncomplete = errors.New("the outbox in the database is incomplete")

// wholeOutbox refuses an outbox that lacks a trigger or another object of the contract: what is staged there would be kept and never delivered.
// What else is wrong with the database is found when it is opened.
func (a *Appliance) wholeOutbox(ctx context.Context) error {
	plan, err := guest.Look(ctx, guest.Options{DB: a.options.DB, Schema: besideSchema(a.options.Build.Schema), Version: outbox.SchemaVersion})
	if err != nil {
		return nil //nolint:nilerr // store.Open says it in its own words
	}
	defer func() { _ = plan.Close() }()
	if plan.From != plan.To || len(plan.Missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is missing", errIncomplete, strings.Join(plan.Missing, ", "))
}

// judgeBeside refuses a configuration that would quietly have no effect.
func (c Config) judgeBeside() error {
	switch {
	case c.Lending:
		return fmt.Errorf("lending: %w", errOwnOnly)
	case len(c.Inbound) > 0:
		return fmt.Errorf("inbound: %w", errOwnOnly)
	}
	return nil
}

// DataDirOf is the data folder of another program's database, where none is named.
func DataDirOf(db string) string { return db + ".posthorn" }

// settle finds out which data folder and which database are meant.
func (o *Options) settle() (err error) {
	if o.DB != "" {
		if o.DB, err = resolve(o.DB); err != nil {
			return fmt.Errorf("find database: %w", err)
		}
		if o.DataDir == "" {
			o.DataDir = DataDirOf(o.DB)
		}
	}
	if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		return fmt.Errorf("find data folder: %w", err)
	}
	noted, err := readBeside(o.DataDir)
	switch {
	case err != nil:
		return err
	case o.DB == "":
		o.DB = noted
	case noted != "" && noted != o.DB:
		return fmt.Errorf("%w: %s lies beside %s, not beside %s", errFolder, o.DataDir, noted, o.DB)
	case noted == "":
		if _, err := os.Stat(filepath.Join(o.DataDir, DatabaseName)); err == nil {
			return fmt.Errorf("%w: %s holds messages of its own", errFolder, o.DataDir)
		}
	}
	if o.DB != "" {
		return o.Config.judgeBeside()
	}
	return nil
}

// resolve makes one name of all names of a file that exists.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", store.ErrMissing, path)
	}
	return resolved, err
}

func readBeside(dataDir string) (string, error) {
	text, err := regular.Read(filepath.Join(dataDir, besideName), maxBeside)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read what the data folder lies beside: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// takeBeside ties a data folder to a database before the first start, so that from then on the folder's name alone is enough: a command that
// names it without the database would otherwise make a database of its own there.
func takeBeside(dataDir, db string) error {
	o := Options{DataDir: dataDir, DB: db}
	if err := o.settle(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return noteBeside(o.DataDir, o.DB)
}

// noteBeside writes down the database, before anything else of Posthorn's is in the folder, and has the note on the disk: without it the
// control database would be taken for one with messages of its own.
func noteBeside(dataDir, db string) error {
	if noted, err := readBeside(dataDir); err != nil || noted != "" {
		return err
	}
	path := filepath.Join(dataDir, besideName)
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("note the database: %w", err)
	}
	_, err = file.WriteString(db + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("note the database: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("note the database: %w", err)
	}
	folder, err := os.Open(dataDir)
	if err != nil {
		return fmt.Errorf("note the database: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("note the database: %w", err)
	}
	return nil
}

// guestOptions are those of a store in another program's database, with the control database attached.
func (a *Appliance) guestOptions(opt store.Options) (store.Options, error) {
	control, err := part(opt.Schema, "meta", "control")
	if err != nil {
		return opt, err
	}
	opt.Control = &store.Control{Path: opt.Path, Schema: control, Version: opt.SchemaVersion}
	opt.Path, opt.Schema, opt.Create, opt.Guest = a.options.DB, "", false, true
	// The lock of a group is the other program's wait.
	opt.Writer.GroupTime, opt.Writer.GroupMax = guestGroupTime, guestGroupMax
	opt.CheckpointPages = guestPages
	return opt, noteBeside(a.options.DataDir, a.options.DB)
}

// part joins parts of the contract, as its marks name them.
func part(schema string, names ...string) (string, error) {
	var joined strings.Builder
	for _, name := range names {
		begin, end := "-- "+name+": begin\n", "-- "+name+": end"
		from := strings.Index(schema, begin)
		length := strings.Index(schema[max(from, 0):], end)
		if from < 0 || length < 0 {
			return "", fmt.Errorf("the contract has no part %q", name)
		}
		joined.WriteString(schema[from:from+length] + end + "\n\n")
	}
	return joined.String(), nil
}

// besideSchema is what another program's database is given.
func besideSchema(schema string) string {
	text, err := part(schema, "outbox", "answers")
	if err != nil {
		return "" // a test holds that the contract has these parts
	}
	return text
}
