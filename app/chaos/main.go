//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// flags are what a command line says.
type flags struct {
	profile profile
	name    string
	faults  []string
	cycles  int
	limit   time.Duration
	binary  string
	seed    uint64
	json    bool
	keep    bool
	list    bool
	mutants bool
	only    []string // of the seeded bugs
}

func parse(args []string, errOut io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(errOut)
	set.StringVar(&f.name, "profile", "normal", "how much: brief, normal or long")
	only := set.String("fault", "", "only these faults, with commas between them")
	set.IntVar(&f.cycles, "cycles", 0, "so many cycles of each fault, whatever the profile says")
	set.DurationVar(&f.limit, "limit", 0, "end after this time; by default 10 m for normal, and never for long")
	set.StringVar(&f.binary, "binary", "", "the posthorn to prove; by default it is built")
	set.Uint64Var(&f.seed, "seed", 0, "repeat the chances of an earlier run; by default new ones")
	set.BoolVar(&f.json, "json", false, "print JSON")
	set.BoolVar(&f.keep, "keep", false, "keep the work folder")
	set.BoolVar(&f.list, "list", false, "list the faults")
	set.BoolVar(&f.mutants, "mutants", false, "run the seeded bugs, each against the faults that should catch it")
	mutant := set.String("mutant", "", "with --mutants: only these, with commas between them")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch f.name {
	case "brief":
		f.profile = brief
	case "normal":
		f.profile = normal
		if f.limit == 0 {
			f.limit = 10 * time.Minute
		}
	case "long":
		f.profile = long
	default:
		return f, fmt.Errorf("profile %q is none of brief, normal, long", f.name)
	}
	if *only != "" {
		f.faults = strings.Split(*only, ",")
		for _, name := range f.faults {
			if !slices.ContainsFunc(faults(), func(x fault) bool { return x.name == name }) {
				return f, fmt.Errorf("there is no fault %q; see --list", name)
			}
		}
	}
	if *mutant != "" {
		f.only = strings.Split(*mutant, ",")
	}
	if f.seed == 0 {
		f.seed = rand.Uint64N(1_000_000) + 1
	}
	return f, nil
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	f, err := parse(args, errOut)
	if err != nil {
		fmt.Fprintln(errOut, "chaos:", err)
		return 2
	}
	if f.list {
		for _, x := range faults() {
			fmt.Fprintf(out, "%-18s %s\n", x.name, x.about)
		}
		return 0
	}
	var broken bool
	if f.mutants {
		broken, err = proveMutants(ctx, f, out, errOut)
	} else {
		broken, err = proveAll(ctx, f, out, errOut)
	}
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "chaos:", err)
		return 2
	case broken:
		return 1
	}
	return 0
}

// proveAll runs the profile.
func proveAll(ctx context.Context, f flags, out, errOut io.Writer) (broken bool, err error) {
	tell := teller(errOut)
	tell("building posthorn")
	m, err := newMachine(ctx, f.binary, f.seed, "")
	if err != nil {
		return false, err
	}
	m.keep = f.keep
	defer func() {
		if closeErr := m.close(); err == nil {
			err = closeErr
		}
	}()
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	began := time.Now()
	r := &report{Profile: f.name, Seed: f.seed}
	for _, x := range faults() {
		cycles := x.cycles[f.profile]
		if f.cycles > 0 {
			cycles = f.cycles
		}
		if len(f.faults) > 0 && !slices.Contains(f.faults, x.name) || cycles == 0 {
			continue
		}
		if ctx.Err() != nil {
			r.add(outcome{Fault: x.name, About: x.about, Planned: cycles, NotRun: "the time was up"})
			continue
		}
		r.add(prove(ctx, m, x, cycles, tell))
	}
	r.Seconds = time.Since(began).Seconds()
	tell("")
	if f.keep {
		fmt.Fprintln(errOut, "kept:", m.work)
	}
	if f.json {
		err = r.json(out)
	} else {
		err = r.table(out)
	}
	return r.Broken > 0, err
}

// teller shows progress: one line that is written over on a terminal, a line now and then elsewhere.
func teller(out io.Writer) func(string) {
	terminal := false
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	var last time.Time
	return func(text string) {
		switch {
		case terminal:
			fmt.Fprintf(out, "\r\x1b[K%s", text)
		case text != "" && time.Since(last) > 10*time.Second:
			last = time.Now()
			fmt.Fprintln(out, text)
		}
	}
}
