package cli

import "github.com/urfave/cli/v2"

func serveCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "Run the appliance: deliver, and answer requests",
		Description: `It ends by SIGTERM or Ctrl-C, once the deliveries that are under way are settled; what is pending waits in the data folder.
A second signal ends it at once, and even then nothing is lost.`,
		Flags: []cli.Flag{
			dataDirFlag(),
			&cli.StringFlag{Name: "listen", Usage: "answer on this `ADDRESS` (default: 127.0.0.1:7678)", EnvVars: []string{"POSTHORN_LISTEN"}},
			configFlag(),
			&cli.PathFlag{Name: "ready-file", Usage: "write {\"url\",\"socket\",\"pid\",\"version\"} to this `FILE` once requests are answered",
				EnvVars: []string{"POSTHORN_READY_FILE"}},
			&cli.BoolFlag{Name: "log-json", Usage: "log JSON lines", EnvVars: []string{"POSTHORN_LOG_JSON"}, DisableDefaultText: true},
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return deps.Serve(c.Context, ServeFlags{
				DataDir: c.Path("data-dir"), Listen: c.String("listen"), Config: c.Path("config"), ReadyFile: c.Path("ready-file"),
				LogJSON: c.Bool("log-json"),
			})
		},
	}
}
