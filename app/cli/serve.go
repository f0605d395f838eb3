package cli

import "github.com/urfave/cli/v2"

func acceptFlag() cli.Flag {
	return &cli.BoolFlag{Name: "accept-lost-tail", Usage: "go on although the database has lost its latest commits, or was restored; this once, and audited", DisableDefaultText: true}
}

func serveCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "Run the appliance: deliver, and answer requests",
		Description: `It ends by SIGTERM or Ctrl-C, once the deliveries that are under way are settled; what is pending waits in the data folder.
A second signal ends it at once, and even then nothing is lost.`,
		Flags: []cli.Flag{
			dataDirFlag(),
			dbFlag(),
			acceptFlag(),
			&cli.StringFlag{Name: "listen", Usage: "answer on this `ADDRESS` (default: 127.0.0.1:7678)", EnvVars: []string{"POSTHORN_LISTEN"}},
			configFlag(),
			&cli.PathFlag{Name: "ready-file", Usage: "write {\"url\",\"socket\",\"pid\",\"version\"} to this `FILE` once requests are answered",
				EnvVars: []string{"POSTHORN_READY_FILE"}},
			&cli.BoolFlag{Name: "insecure-listen", Usage: "allow --listen to be no loopback address without TLS, as behind a proxy that has it",
				EnvVars: []string{"POSTHORN_INSECURE_LISTEN"}, DisableDefaultText: true},
			&cli.StringFlag{Name: "log-level", Usage: "log from this `LEVEL` on: debug, info, warn or error (default: info)", EnvVars: []string{"POSTHORN_LOG_LEVEL"}},
			&cli.BoolFlag{Name: "log-json", Usage: "log JSON lines", EnvVars: []string{"POSTHORN_LOG_JSON"}, DisableDefaultText: true},
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			at := deps.place(c)
			flags := ServeFlags{
				DataDir: at.dataDir, // where nothing names it, the configuration file may
				DB:      at.db, AcceptLostTail: c.Bool("accept-lost-tail"),
				Listen: c.String("listen"), InsecureListen: c.Bool("insecure-listen"), Config: c.Path("config"), ReadyFile: c.Path("ready-file"),
				LogLevel: c.String("log-level"), LogJSON: c.Bool("log-json"),
			}
			return deps.Serve(c.Context, flags)
		},
	}
}
