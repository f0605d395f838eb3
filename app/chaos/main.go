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

// What a proof ends with.
const (
	exitBroken = 1 // a promise was broken, or a seeded bug was missed
	exitUsage  = 2 // it could not be begun
	exitShort  = 3 // nothing was broken, but a number was not reached: that is no pass
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if madeLauncher != "" {
		_ = os.Remove(madeLauncher)
	}
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
	set.DurationVar(&f.limit, "limit", 0, "end after this time; by default 9 m 40 s for normal, and never for long")
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
			f.limit = 9*time.Minute + 40*time.Second
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
		return exitUsage
	}
	if f.list {
		for _, x := range faults() {
			fmt.Fprintf(out, "%-18s %s\n", x.name, x.about)
		}
		return 0
	}
	var code int
	if f.mutants {
		code, err = proveMutants(ctx, f, out, errOut)
	} else {
		code, err = proveAll(ctx, f, out, errOut)
	}
	if err != nil {
		fmt.Fprintln(errOut, "chaos:", err)
		return exitUsage
	}
	return code
}

// proveAll runs the profile.
func proveAll(ctx context.Context, f flags, out, errOut io.Writer) (code int, err error) {
	tell := teller(errOut)
	tell("building posthorn")
	m, err := newMachine(ctx, f.binary, f.seed, "")
	if err != nil {
		return 0, err
	}
	m.keep = f.keep
	defer func() {
		if closeErr := m.close(); err == nil {
			err = closeErr
		}
	}()
	// A second signal ends this at once.
	defer context.AfterFunc(ctx, func() {
		m.stopped.Store(true)
		signal.Reset(os.Interrupt, syscall.SIGTERM)
	})()
	began := time.Now()
	r := &report{Profile: f.name, Seed: f.seed}
	var turns []*turn
	for _, x := range faults() {
		cycles := x.cycles[f.profile]
		if f.cycles > 0 {
			cycles = f.cycles
		}
		if cycles > 0 && (len(f.faults) == 0 || slices.Contains(f.faults, x.name)) {
			turns = append(turns, &turn{fault: x, planned: cycles})
		}
	}
	takeTurns(ctx, m, turns, f.limit, tell)
	for _, t := range turns {
		r.add(t.outcome)
	}
	if f.profile == normal && len(f.faults) == 0 && f.cycles == 0 {
		r.measure(goals)
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
	return r.code(), err
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
