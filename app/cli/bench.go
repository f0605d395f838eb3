package cli

import (
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/bench"
)

func benchCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "Measure this machine beside the least that the same work costs on it",
		Description: `Every scenario runs once a round, in turn; the figure is the median of its rounds, and a ratio is taken within the run.
Databases are made in --dir, which decides whose disk is measured, and removed again.`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "rounds", Usage: "run each scenario this `NUMBER` of times", Value: 5},
			&cli.DurationFlag{Name: "length", Usage: "measure for this `LONG` each time", Value: time.Second},
			&cli.PathFlag{Name: "dir", Usage: "make the databases in this `FOLDER` (default: the system's for temporary files)"},
			&cli.StringSliceFlag{Name: "only", Usage: "run only scenarios whose names begin with this `NAME`, such as stage/"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			program, err := deps.Executable()
			if err != nil {
				return err
			}
			opt := bench.Options{
				Rounds: c.Int("rounds"), Length: c.Duration("length"), Dir: c.Path("dir"), Only: c.StringSlice("only"), Program: program,
				Progress: func(done, all int, name string) {
					fmt.Fprintf(deps.Err, "\r\x1b[K%3d of %d  %s", done+1, all, name)
				},
			}
			if opt.Rounds < 1 || opt.Rounds > 100 || opt.Length < 10*time.Millisecond || opt.Length > time.Minute {
				return &Failure{Code: ExitUsage, Sentence: "--rounds must be 1 to 100 and --length 10ms to 1m"}
			}
			results, err := bench.Run(c.Context, opt)
			fmt.Fprint(deps.Err, "\r\x1b[K")
			if err != nil {
				return err
			}
			out := deps.terminal(c)
			if out.json {
				return out.encode(map[string]any{"machine": machine(deps), "command": os.Args, "rounds": opt.Rounds, "length": opt.Length.String(), "results": results})
			}
			out.printf("%s; %d rounds of %s\n\n", machine(deps), opt.Rounds, opt.Length)
			table := tabwriter.NewWriter(deps.Out, 0, 8, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(table, "scenario\tmedian\tleast\tmost\tunit\tratio\tagainst\t")
			for _, r := range results {
				least, most := r.Range()
				ratio := ""
				if r.Against != "" && r.Ratio != 0 {
					ratio = fmt.Sprintf("%.2f", r.Ratio)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, figure(r.Median), figure(least), figure(most), r.Unit, ratio, r.Against)
			}
			return table.Flush()
		},
	}
}

// machine says what the figures were measured on.
func machine(deps Deps) string {
	return fmt.Sprintf("%s/%s, %d cores, %s, posthorn %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), deps.Version)
}

// figure writes large figures whole and small ones with what matters of them.
func figure(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3f", f)
}
