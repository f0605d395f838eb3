package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/bench"
	"github.com/posthorn/posthorn/app/need"
	"github.com/posthorn/posthorn/app/records"
)

func measureCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "measure",
		Usage: "Measure what a decision about this Posthorn is drawn from",
		Subcommands: []*cli.Command{{
			Name:  "realtime",
			Usage: "Compare polling at several intervals with live updates, for each screen that has a notification record",
			Description: `A Posthorn of its own is started in a folder that is removed again, and filled. Delay is the time from the answer to a change until a screen has
read what is so since. CPU is the server's, bytes go both ways; both are for one screen and hour. A record's target is the delay that a person's
decision on that screen allows; a topic is needed where no interval of polling keeps to it within the budget, which is a setting, and the
stream does and sends less. It takes about half a minute for each record.`,
			Flags: []cli.Flag{
				&cli.StringSliceFlag{Name: "only", Usage: "measure only the `RECORD`"},
				&cli.StringFlag{Name: "intervals", Usage: "poll at these `INTERVALS`", Value: "1s,2s,5s,10s"},
				&cli.DurationFlag{Name: "length", Usage: "make changes for this `LONG` for each record", Value: 12 * time.Second},
				&cli.IntFlag{Name: "changes", Usage: "compute the costs for this `NUMBER` of changes an hour", Value: 600},
				jsonFlag(),
			},
			Action: func(c *cli.Context) error {
				if _, err := arguments(c, 0, 0); err != nil {
					return err
				}
				return deps.measureRealtime(c)
			},
		}},
	}
}

func (d Deps) measureRealtime(c *cli.Context) (err error) {
	set, err := records.Load(nil)
	if err != nil {
		return err
	}
	opt := need.Options{Length: c.Duration("length"), Changes: c.Int("changes"),
		Budget: need.Budget{CPU: set.Ratio("live-polling-cpu"), Bytes: set.Bytes("live-polling-bytes")}}
	if opt.Intervals, err = intervals(c.String("intervals")); err != nil {
		return err
	}
	if opt.Length < 100*time.Millisecond || opt.Length > 10*time.Minute || opt.Changes < 1 || opt.Changes > 1_000_000 {
		return misuse("", "--length must be 100ms to 10m and --changes 1 to 1000000")
	}
	screens, err := screensOf(set, c.StringSlice("only"))
	if err != nil {
		return err
	}
	program, err := d.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "posthorn-measure-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "posthorn.yaml"), []byte("lending: true\n"), 0o600); err != nil {
		return err
	}
	server, err := bench.StartServer(c.Context, program, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	opt.URL, opt.Token, opt.CPU = server.URL(), server.Token(), need.ProcessCPU(server.PID())
	line := d.progress()
	opt.Progress = func(done, all int, record string) { line.say("%3d of %d  %s", done+1, all, record) }
	results, err := need.Measure(c.Context, screens, opt)
	line.end()
	if err != nil {
		return err
	}
	return d.showNeed(c, results, opt)
}

// screensOf are the screens that have a record, or those that were asked for.
func screensOf(set *records.Set, only []string) ([]need.Screen, error) {
	var screens []need.Screen
	var ids []string
	for _, n := range set.Notifications() {
		ids = append(ids, n.ID)
		if len(only) > 0 && !slices.Contains(only, n.ID) {
			continue
		}
		screens = append(screens, need.Screen{Record: n.ID, Topic: n.Topic, Query: strings.TrimPrefix(n.Query, "GET "),
			Target: time.Duration(n.UpdateLatency), Screens: n.ExpectedConnections, Live: n.Decision == records.Live})
	}
	for _, id := range only {
		if !slices.Contains(ids, id) {
			return nil, misuse("the records are "+strings.Join(ids, ", "), "there is no notification record %q", id)
		}
	}
	return screens, nil
}

func intervals(text string) ([]time.Duration, error) {
	var list []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		every, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || every < 10*time.Millisecond || every > 10*time.Minute {
			return nil, misuse("--intervals 1s,2s,5s", "%q is no interval of 10ms to 10m", part)
		}
		list = append(list, every)
	}
	slices.Sort(list)
	return list, nil
}

func (d Deps) showNeed(c *cli.Context, results []need.Result, opt need.Options) error {
	out := d.terminal(c)
	if out.json {
		return out.encode(map[string]any{"machine": machine(d), "budget": map[string]any{"cpu": opt.Budget.CPU, "bytes_hour": opt.Budget.Bytes}, "results": results})
	}
	out.printf("%s; costs at %d changes an hour; budget %.1f %% of a core for all screens, %.1f MB an hour for each\n",
		machine(d), opt.Changes, 100*opt.Budget.CPU, float64(opt.Budget.Bytes)/1e6)
	for _, r := range results {
		verdict := "polling is enough"
		if r.Needed {
			verdict = "live"
		}
		out.printf("\n%s (%s), within %s on %d screens: %s: %s\n", r.Record, r.Topic, r.Target, r.Screens, verdict, r.Because)
		table := tabwriter.NewWriter(d.Out, 0, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "  way\tdelay p50\tp99\tchanges seen\tCPU s/h\tMB/h\tall screens\t")
		ways := r.Polling
		if r.Stream != nil {
			ways = append(ways, *r.Stream)
		}
		for _, w := range ways {
			name, cpu, all := "stream", "–", "–"
			if w.Every > 0 {
				name = "every " + w.Every.String()
			}
			if w.CPU >= 0 {
				cpu = fmt.Sprintf("%.2f", w.CPU.Seconds())
				all = fmt.Sprintf("%.2f %%", 100*w.CPU.Hours()*float64(r.Screens))
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%.2f\t%s\t\n", name, w.P50.Round(time.Millisecond), w.P99.Round(time.Millisecond), w.Seen, cpu, float64(w.Bytes)/1e6, all)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
