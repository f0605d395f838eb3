package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/bench"
)

// benchLiveServer is the other process of bench's live/* scenarios.
func benchLiveServer(deps Deps) *cli.Command {
	return &cli.Command{
		Name: bench.LiveServerCommand, Usage: "Serve streams to bench", ArgsUsage: "hub|plain", Hidden: true,
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			return bench.LiveServer(c.Context, given[0], deps.In, deps.Out)
		},
	}
}
