package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/guest"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

func installCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "install",
		Usage: "Bring the outbox into another program's database",
		Description: `It adds tables, indexes, triggers and views under the names outbox_* and posthorn_*, and touches nothing else. Before that it writes a
checked copy of the database into the data folder. A second run finds nothing to do; a run of a later version upgrades.

Every program that writes to the database then needs SQLite ` + guest.LeastSQLite + ` or later: ask each for SELECT sqlite_version().`,
		Flags: []cli.Flag{dataDirFlag(), dbFlag(),
			&cli.BoolFlag{Name: "wal", Usage: "change the journal mode to WAL, which stays in the file", DisableDefaultText: true},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true}, jsonFlag()},
		Action: func(c *cli.Context) error { return guestFailure(deps.install(c)) },
	}
}

func uninstallCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "uninstall",
		Usage: "Take the outbox out of another program's database",
		Description: `It takes away what install brought in, with all messages, and nothing else, after writing a checked copy of the database into the data
folder. The data folder stays. While deliveries are unfinished it refuses.`,
		Flags: []cli.Flag{dataDirFlag(), dbFlag(),
			&cli.BoolFlag{Name: "force", Usage: "give up unfinished deliveries", DisableDefaultText: true},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true}, jsonFlag()},
		Action: func(c *cli.Context) error { return guestFailure(deps.uninstall(c)) },
	}
}

func schemaCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "Print the database contract as SQL",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "beside", Usage: "print only what another program's database is given, for a migration of its own", DisableDefaultText: true}},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			text := deps.Schema
			if c.Bool("beside") {
				text = deps.BesideSchema
			}
			deps.terminal(c).printf("%s\n", strings.TrimSpace(text))
			return nil
		},
	}
}

// guestOptions are what the flags say.
func (d Deps) guestOptions(c *cli.Context) (guest.Options, error) {
	if _, err := arguments(c, 0, 0); err != nil {
		return guest.Options{}, err
	}
	db := d.place(c).db
	if db == "" {
		return guest.Options{}, misuse(c.Command.UsageText+" --db app.db", "--db must name the database")
	}
	steps, err := outbox.Steps()
	return guest.Options{DB: db, Schema: d.BesideSchema, Version: outbox.SchemaVersion, Steps: steps, WAL: c.Bool("wal"),
		Backups: filepath.Join(d.dataDir(c), "backups")}, err
}

func (d Deps) install(c *cli.Context) (err error) {
	options, err := d.guestOptions(c)
	if err != nil {
		return err
	}
	out := d.terminal(c)
	if !out.json {
		out.printf("Every program that writes to this database needs SQLite %s or later; ask each for SELECT sqlite_version().\n\n", guest.LeastSQLite)
	}
	plan, err := guest.Look(c.Context, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	result := struct {
		Database string   `json:"database"`
		From     int      `json:"from"`
		To       int      `json:"to"`
		WAL      bool     `json:"wal_switched"`
		Made     []string `json:"made"`
		Backup   string   `json:"backup,omitempty"`
	}{Database: plan.Path, From: plan.From, To: plan.To, WAL: plan.WAL, Made: append([]string{}, plan.Missing...)}
	if plan.Nothing() {
		if out.json {
			return out.encode(result)
		}
		out.printf("%s  %s has version %d of the outbox already\n", out.paint.green("ok"), clean(plan.Path), plan.To)
		return nil
	}
	if !out.json {
		out.printf("In %s this will\n", clean(plan.Path))
		out.printf("  - write a checked copy into %s\n", clean(options.Backups))
		if plan.WAL {
			out.printf("  - change the journal mode to WAL, for good\n")
		}
		if plan.From > 0 && plan.From < plan.To {
			out.printf("  - bring version %d of the outbox to version %d\n", plan.From, plan.To)
		}
		if len(plan.Missing) > 0 {
			out.printf("  - add %s:\n      %s\n", plan.Kinds(), strings.Join(plan.Missing, "\n      "))
		}
		out.printf("and touch nothing else.\n\n")
	}
	if err := d.confirm(c, "Install?"); err != nil {
		return err
	}
	if err := d.TakeBeside(d.dataDir(c), plan.Path); err != nil {
		return err
	}
	if result.Backup, err = plan.Install(c.Context, d.Now()); err != nil {
		return err
	}
	if out.json {
		return out.encode(result)
	}
	out.printf("%s  version %d of the outbox\nbackup     %s\nnext       posthorn serve --db %s\n", out.paint.green("installed"), plan.To, clean(result.Backup), clean(options.DB))
	return nil
}

func (d Deps) uninstall(c *cli.Context) error {
	options, err := d.guestOptions(c)
	if err != nil {
		return err
	}
	if err := d.confirm(c, "Take the outbox with all its messages out of "+clean(options.DB)+"?"); err != nil {
		return err
	}
	removed, err := guest.Uninstall(c.Context, options, c.Bool("force"), d.Now())
	if err != nil {
		return err
	}
	out := d.terminal(c)
	if out.json {
		return out.encode(map[string]any{"database": options.DB, "removed": removed.Objects, "unfinished": removed.Unfinished, "backup": removed.Backup})
	}
	out.printf("%s  %d tables, indexes, triggers and views; %d deliveries unfinished\nbackup       %s\n", out.paint.green("uninstalled"), removed.Objects,
		removed.Unfinished, clean(removed.Backup))
	return nil
}

// guestFailures say what an error means for the process, and what to do.
var guestFailures = []struct {
	is     error
	code   int
	advice string
}{
	{outbox.ErrSchemaNewer, ExitNewer, "use the newer Posthorn; to go back for good, put back the copy that it made in the data folder's backups before it upgraded"},
	{store.ErrHeld, ExitHeld, "stop posthorn serve first"},
	{guest.ErrMissing, ExitFailed, "--db names a database that another program has made already; is the path right?"},
	{guest.ErrJournal, ExitFailed, "add --wal: the file stays in WAL mode, and programs work with it as before; each must be on this machine"},
	{guest.ErrEncoding, ExitFailed, "the encoding is chosen when a database is made: dump it into a new one"},
	{guest.ErrNetwork, ExitFailed, "move the database to a disk of this machine"},
	{guest.ErrNames, ExitFailed, "rename them, or keep Posthorn's tables in a database of their own"},
	{guest.ErrNotADatabase, ExitIntegrity, "an encrypted database cannot be served; a damaged one is restored from a backup"},
	{guest.ErrBusy, ExitFailed, "try again when it has ended its transaction, or has closed the file"},
	{guest.ErrUnfinished, ExitFailed, "let posthorn serve --db finish them, or cancel them, or add --force to give them up"},
}

func guestFailure(err error) error {
	for _, row := range guestFailures {
		if errors.Is(err, row.is) {
			return &Failure{Code: row.code, Sentence: err.Error(), Advice: row.advice}
		}
	}
	return err
}
