package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/records"
)

func conformanceCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "conformance",
		Usage:       "Print for each provision how it is met, by which tests that is shown, and what they are known to catch",
		Description: `The table is in the program: records/conformance.md, which a test holds complete. It needs no data folder.`,
		Flags:       []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			out := deps.terminal(c)
			rows := records.Conformance()
			if out.json {
				return out.encode(map[string]any{"provisions": rows})
			}
			states := map[string]int{}
			for _, row := range rows {
				states[row.State]++
				state := out.paint.green(row.State)
				if row.State != "met" {
					state = out.paint.yellow(row.State)
				}
				out.printf("%-4s %s  %s\n", clean(row.Provision), state, clean(row.How))
				if len(row.Tests) > 0 {
					out.printf("           %s\n", out.paint.dim(clean(strings.Join(row.Tests, ", "))))
				}
				if len(row.Mutations) > 0 {
					out.printf("           %s\n", out.paint.dim("caught when broken: "+strings.Join(row.Mutations, ", ")))
				}
			}
			out.printf("\n%d provisions: %d met, %d partly, %d open\n", len(rows), states["met"], states["partly"], states["open"])
			return nil
		},
	}
}
