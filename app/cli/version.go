package cli

import (
	"runtime"
	"strconv"

	"github.com/urfave/cli/v2"
)

// Read is a version of a message type that a program reads.
type Read struct {
	Kind          string `json:"kind"`
	Type          string `json:"type"`
	SchemaVersion int    `json:"schema_version"`
}

func versionCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version, or what this program reads",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "readers", Usage: "print the types and schema versions that this program reads with the records of the data folder, for rollback-check", DisableDefaultText: true},
			dataDirFlag(), dbFlag(), jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			out := deps.terminal(c)
			if c.Bool("readers") {
				return deps.showReaders(c, out)
			}
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

func (d Deps) showReaders(c *cli.Context, out *terminal) error {
	reads, err := d.Readers(d.dataDir(c))
	if err != nil {
		return err
	}
	if out.json {
		return out.encode(map[string]any{"version": d.Version, "reads": reads})
	}
	table := out.table("KIND", "TYPE", "VERSION")
	for _, r := range reads {
		table.row(r.Kind, r.Type, strconv.Itoa(r.SchemaVersion))
	}
	return table.end()
}
