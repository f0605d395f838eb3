package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"
	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

// DefaultDataDir is the data folder, in the current folder, that is used when none is named.
const DefaultDataDir = "posthorn-data"

// The environment's names for what --data-dir, --db and --server name. urfave/cli is not told of them: each of the flags goes before all of
// these, and it would not say which of the two a value came from.
const (
	envDataDir = "POSTHORN_DATA_DIR"
	envDB      = "POSTHORN_DB"
	envURL     = "POSTHORN_URL"
)

func dataDirFlag() cli.Flag {
	return &cli.PathFlag{Name: "data-dir", Usage: "the data `FOLDER` [$" + envDataDir + "]", DefaultText: DefaultDataDir}
}

func dbFlag() cli.Flag {
	return &cli.PathFlag{Name: "db", Usage: "the SQLite `FILE` of another program, to work beside it; its data folder is FILE.posthorn unless --data-dir names one [$" + envDB + "]"}
}

// place is where a Posthorn keeps its data.
type place struct {
	dataDir string // "" where nothing names it: it is the default one
	db      string // the database of another program that it lies beside, or ""
}

// place is what the flags name, else what the environment does. One flag is enough to leave the environment out: a folder from there
// would not be that of the database which the flag names, nor a database that of the folder.
func (d Deps) place(c *cli.Context) place {
	at := place{c.Path("data-dir"), c.Path("db")}
	if at == (place{}) {
		at = place{d.Getenv(envDataDir), d.Getenv(envDB)}
	}
	if at.db != "" && at.dataDir == "" {
		db := at.db
		if resolved, err := filepath.EvalSymlinks(db); err == nil {
			db = resolved
		}
		at.dataDir = d.DataDirOf(db)
	}
	return at
}

// dataDir is the data folder that is meant.
func (d Deps) dataDir(c *cli.Context) string { return cmp.Or(d.place(c).dataDir, DefaultDataDir) }

// server is the address of the Posthorn elsewhere that is meant; "" is one on this machine, which a flag names before the environment.
func (d Deps) server(c *cli.Context) (string, error) {
	address, here := c.String("server"), c.Path("data-dir") != "" || c.Path("db") != ""
	switch {
	case address != "" && here:
		return "", misuse("leave --server out, or --data-dir and --db", "a Posthorn elsewhere and a folder of this machine are named at once")
	case address == "" && !here:
		address = d.Getenv(envURL)
	}
	return address, nil
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON", DisableDefaultText: true}
}

func configFlag() cli.Flag {
	return &cli.PathFlag{Name: "config", Usage: "the configuration `FILE` (default: posthorn.yaml in the data folder)", EnvVars: []string{"POSTHORN_CONFIG"}}
}

// clientFlags are the flags of a command that speaks to a Posthorn and does what a tenant's caller may do, with its own before them. What it
// sends is scoped to --tenant.
func clientFlags(own ...cli.Flag) []cli.Flag {
	return serverFlags(append(own, &cli.StringFlag{Name: "tenant", Usage: "act for this `TENANT` (default: the caller's own)", EnvVars: []string{"POSTHORN_TENANT"}})...)
}

// serverFlags are those of a command about the whole of a Posthorn, which no tenant has a part of. The server's address is --server, and
// --url too unless the command has a --url of its own.
func serverFlags(own ...cli.Flag) []cli.Flag {
	server := &cli.StringFlag{Name: "server", Usage: "speak to the Posthorn at this `ADDRESS`, with the API token in POSTHORN_TOKEN [$" + envURL + "]"}
	if !slices.ContainsFunc(own, func(flag cli.Flag) bool { return slices.Contains(flag.Names(), "url") }) {
		server.Aliases = []string{"url"}
	}
	return append(own, dataDirFlag(), dbFlag(), configFlag(), server,
		&cli.PathFlag{Name: "token-file", Usage: "read the API token for --server from a `FILE`"},
		jsonFlag())
}

// scoped adds the tenant to a path.
func scoped(c *cli.Context, path string) string {
	tenant := c.String("tenant")
	if tenant == "" {
		return path
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + url.Values{"tenant": {tenant}}.Encode()
}

func defaultSocket(dataDir string) string { return filepath.Join(dataDir, "posthorn.sock") }

// access says whether a command may make the data folder.
type access bool

const (
	existing access = false
	creating access = true
)

// withClient runs a command with a client for the Posthorn that its flags name.
func (d Deps) withClient(c *cli.Context, access access, run func(context.Context, *client.Client) error) (err error) {
	posthorn, err := d.connect(c, access)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, posthorn.Close()) }()
	return run(c.Context, posthorn)
}

func (d Deps) connect(c *cli.Context, access access) (*client.Client, error) {
	address, err := d.server(c)
	if err != nil {
		return nil, err
	}
	if address != "" {
		token, err := d.token(c)
		if err != nil {
			return nil, err
		}
		remote, err := client.Remote(address, token)
		if err != nil {
			return nil, &Failure{Code: ExitUsage, Sentence: err.Error()}
		}
		return remote, nil
	}
	dataDir := d.dataDir(c)
	if _, err := os.Stat(dataDir); errors.Is(err, fs.ErrNotExist) && access == existing {
		return nil, &Failure{Code: ExitFailed, Sentence: "there is no data folder " + dataDir,
			Advice: "name it with --data-dir or POSTHORN_DATA_DIR; `posthorn serve` makes one"}
	}
	return d.reach(c.Context, dataDir, d.place(c).db, c.Path("config"))
}

// token is the API token for a server elsewhere. There is no flag for the token itself, since every user of a machine sees its
// processes' flags.
func (d Deps) token(c *cli.Context) (string, error) {
	file := c.Path("token-file")
	if file == "" {
		return d.Getenv("POSTHORN_TOKEN"), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &Failure{Code: ExitFailed, Sentence: "the API token cannot be read", Cause: err}
	}
	return strings.TrimSpace(string(text)), nil
}

// reach finds the process that runs on a data folder, or opens the folder here. A process that has the lock but does not answer yet is
// starting, or another command is at work: both are over soon.
func (d Deps) reach(ctx context.Context, dataDir, db, config string) (*client.Client, error) {
	const patience = 3 * time.Second
	var found *client.Client
	backoff := retry.WithMaxDuration(patience, retry.WithCappedDuration(250*time.Millisecond, retry.NewExponential(10*time.Millisecond)))
	err := retry.Do(ctx, backoff, func(ctx context.Context) error {
		if socket := d.Socket(dataDir); answers(ctx, socket) {
			found = client.Unix(socket)
			return nil
		}
		local, err := d.OpenLocal(ctx, dataDir, db, config)
		if exitCode(err) == ExitHeld {
			return retry.RetryableError(err)
		}
		if err != nil {
			return err
		}
		found = client.InProcess(local, local.Close)
		return nil
	})
	return found, err
}

// answers says whether somebody listens on a socket; one that a killed process left refuses.
func answers(ctx context.Context, socket string) bool {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
