package cli

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/demo"
)

func demoCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "See it work: sample traffic, a receiver that misbehaves a little, and a process that you may kill",
		Description: `The appliance runs as a child process, which is started again when it dies. The built-in receiver lives in the demo itself, as the
outside world outlives a crash. Everything is kept in the data folder, and the next demo goes on from there.`,
		Flags: []cli.Flag{
			&cli.PathFlag{Name: "data-dir", Usage: "the data `FOLDER`", Value: "posthorn-demo", EnvVars: []string{"POSTHORN_DEMO_DIR"}},
			&cli.StringFlag{Name: "listen", Usage: "answer on this `ADDRESS`", Value: "127.0.0.1:7678", EnvVars: []string{"POSTHORN_LISTEN"}},
			&cli.StringFlag{Name: "receiver", Usage: "have the receiver listen on this `ADDRESS` at the first start", Value: "127.0.0.1:0"},
			&cli.DurationFlag{Name: "every", Usage: "make a transaction this `OFTEN`; 0 makes none", Value: time.Second},
			&cli.BoolFlag{Name: "calm", Usage: "have the receiver behave", DisableDefaultText: true},
			acceptFlag(),
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			program, err := deps.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			every := c.Duration("every")
			if every <= 0 {
				every = -1
			}
			return demo.Run(c.Context, demo.Config{
				DataDir: c.Path("data-dir"), Listen: c.String("listen"), Receiver: c.String("receiver"), Every: every, Calm: c.Bool("calm"),
				AcceptLostTail: c.Bool("accept-lost-tail"),
				Executable:     program, Out: deps.Out, JSON: c.Bool("json"), Color: paletteFor(deps.Out, deps.Getenv).on, Now: deps.Now,
			})
		},
	}
}
