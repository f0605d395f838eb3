package cli

import (
	"runtime"

	"github.com/urfave/cli/v2"
)

func versionCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			out := deps.terminal(c)
			if out.json {
				return out.encode(map[string]string{
					"version": deps.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			out.printf("posthorn %s (%s, %s/%s)\n", deps.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
