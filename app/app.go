// Package app is the product: it puts the libraries outbox, realtime and ui together with the use cases, the HTTP API, the command line and the
// records, and runs them as one process.
//
// [Main] is the program. [Open] is an [Appliance], everything that works on one data folder; [Serve] answers requests with it until it is
// told to stop. What the process ends with is decided in one place, exit.go.
package app

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/cli"
)

// Build is what only main can know.
type Build struct {
	// Schema is schema.sql.
	Schema string
	// Version is the program's.
	Version string
	// Built is when it was built, as RFC 3339; empty: the time of its revision, if the toolchain has noted one.
	Built string
}

// date is the time before which this program cannot be running; zero when nobody knows.
func (b Build) date() time.Time {
	built := b.Built
	if info, ok := debug.ReadBuildInfo(); ok && built == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.time" {
				built = setting.Value
			}
		}
	}
	date, err := time.Parse(time.RFC3339, built)
	if err != nil {
		return time.Time{}
	}
	return date
}

// Main runs a command line, args[0] being the program, and returns the exit code. The first signal to stop has a command end in good order;
// the second ends the process at once, which loses nothing.
func Main(ctx context.Context, build Build, args []string, in io.Reader, out, errOut io.Writer) int {
	hardenProcess()
	ctx, stop := untilSignal(ctx)
	defer stop()
	return cli.Run(ctx, cli.Deps{
		Version: build.Version,
		Schema:  build.Schema, BesideSchema: besideSchema(build.Schema), DataDirOf: DataDirOf,
		TakeBeside: func(dataDir, db string) error { return exit(takeBeside(dataDir, db)) },
		OpenLocal: func(ctx context.Context, dataDir, db, config string) (cli.Local, error) {
			local, err := openLocal(ctx, build, dataDir, db, config)
			if err != nil {
				return nil, exit(err)
			}
			return local, nil
		},
		Serve: func(ctx context.Context, flags cli.ServeFlags) error {
			return exit(serve(ctx, build, flags, errOut))
		},
		Socket:  SocketPath,
		Readers: readable,
		In:      in, Out: out, Err: errOut,
	}, args[min(1, len(args)):])
}

// untilSignal returns a context that ends with the first signal to stop. The second ends the process.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, stopSignals...)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case received := <-signals:
				if n > 0 {
					code := cli.ExitInterrupt
					if number, ok := received.(syscall.Signal); ok {
						code = 128 + int(number)
					}
					os.Exit(code)
				}
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// serve is the command of that name.
func serve(ctx context.Context, build Build, flags cli.ServeFlags, log io.Writer) error {
	if flags.DB != "" {
		if _, err := resolve(flags.DB); err != nil {
			return err
		}
	}
	config, dataDir, err := configure(flags.DataDir, flags.Config)
	if err != nil {
		return err
	}
	if flags.Listen != "" {
		config.Listen = flags.Listen
	}
	if flags.InsecureListen {
		config.InsecureListen = true
	}
	if flags.LogLevel != "" {
		config.Log.Level = flags.LogLevel
	}
	if flags.LogJSON {
		config.Log.Format = "json"
	}
	if _, err := config.level(); err != nil {
		return &cli.Failure{Code: cli.ExitUsage, Sentence: "the log level is none", Advice: "--log-level debug, info, warn or error"}
	}
	logger := config.logger(log)
	tameLibraries(logger)
	return Serve(ctx, Options{Build: build, DataDir: dataDir, DB: flags.DB, AcceptLostTail: flags.AcceptLostTail, Config: config, Logger: logger},
		flags.ReadyFile)
}

// configure reads the configuration file, named or in the data folder, and settles which data folder is meant.
func configure(dataDir, file string) (Config, string, error) {
	asked := file != ""
	if dataDir == "" {
		dataDir = cli.DefaultDataDir
		if asked {
			config, err := ReadConfig(file, asked)
			if err == nil && config.DataDir != "" {
				dataDir = config.DataDir
			}
			return config, dataDir, err
		}
	}
	if !asked {
		file = filepath.Join(dataDir, ConfigName)
	}
	config, err := ReadConfig(file, asked)
	return config, dataDir, err
}

// local is an appliance opened for one command of the user who runs it.
type local struct{ *Appliance }

func openLocal(ctx context.Context, build Build, dataDir, db, file string) (cli.Local, error) {
	config, dataDir, err := configure(dataDir, file)
	if err != nil {
		return nil, err
	}
	appliance, err := Open(ctx, Options{Build: build, DataDir: dataDir, DB: db, Config: config, NoDispatch: true})
	if err != nil {
		return nil, err
	}
	return local{appliance}, nil
}

// ServeHTTP serves a request as the user's own.
func (l local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.Handler().ServeHTTP(w, r.WithContext(access.With(r.Context(), access.LocalPrincipal())))
}

// Close gives the data folder free.
func (l local) Close() error { return exit(l.Appliance.Close(context.Background())) }
