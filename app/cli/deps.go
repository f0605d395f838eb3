package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"time"
)

// Local is the appliance in this process, opened for one command: its API, for the user who runs the command. Closing it gives the
// data folder free.
type Local interface {
	http.Handler
	Close() error
}

// ServeFlags are the flags of `posthorn serve`. An empty one was not given: the configuration file's value holds, then the default.
type ServeFlags struct {
	DataDir        string
	DB             string // a database that belongs to another program
	AcceptLostTail bool   // go on although commits are lost
	Listen         string // host:port; port 0 takes any
	InsecureListen bool   // allows Listen to be no loopback address without TLS
	Config         string // the path of posthorn.yaml
	ReadyFile      string // gets {"url","socket","pid","version"} once requests are answered
	LogLevel       string // debug, info, warn, error
	LogJSON        bool
}

// Deps is what the commands need from the program around them.
type Deps struct {
	// Version is the program's version.
	Version string
	// Schema is the database contract, BesideSchema what a database that belongs to another program is given of it.
	Schema, BesideSchema string
	// DataDirOf names the data folder of another program's database. Required by the commands that take --db.
	DataDirOf func(db string) string
	// TakeBeside ties a data folder to the database of another program, or refuses where it belongs elsewhere. Required by install.
	TakeBeside func(dataDir, db string) error
	// OpenLocal opens a data folder under its lock. db, unless empty, is the database of another program that it lies beside; config is the
	// path of a configuration file, or "". An error may have the methods ExitCode and Hint.
	OpenLocal func(ctx context.Context, dataDir, db, config string) (Local, error)
	// Serve runs the appliance until the context ends, and then drains.
	Serve func(ctx context.Context, flags ServeFlags) error
	// Readers lists what this program reads with the records of a data folder, which need not exist.
	Readers func(dataDir string) ([]Read, error)
	// Socket names the unix socket of a data folder. Defaults to posthorn.sock inside it.
	Socket func(dataDir string) string

	// In, Out and Err default to the process's own.
	In       io.Reader
	Out, Err io.Writer
	// Getenv defaults to os.Getenv.
	Getenv func(string) string
	// Executable names the program that demo starts as its child. Defaults to os.Executable.
	Executable func() (string, error)
	// Now defaults to time.Now.
	Now func() time.Time
}

func (d Deps) withDefaults() Deps {
	if d.In == nil {
		d.In = os.Stdin
	}
	if d.Out == nil {
		d.Out = os.Stdout
	}
	if d.Err == nil {
		d.Err = os.Stderr
	}
	if d.Socket == nil {
		d.Socket = defaultSocket
	}
	if d.DataDirOf == nil {
		d.DataDirOf = func(db string) string { return db + ".posthorn" }
	}
	if d.Getenv == nil {
		d.Getenv = os.Getenv
	}
	if d.Executable == nil {
		d.Executable = os.Executable
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}
