//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is the whole proof.
type report struct {
	Profile  string    `json:"profile"`
	Seed     uint64    `json:"seed"`
	Seconds  float64   `json:"seconds"`
	Outcomes []outcome `json:"faults"`
	Broken   int       `json:"violations"`
	NotRun   int       `json:"not_run"`
	Short    int       `json:"short"`
	Goals    []goal    `json:"goals,omitempty"`
}

// goal is a number that the faults of the normal profile reach together.
type goal struct {
	Name string `json:"name"`
	Want int    `json:"want"`
	Got  int    `json:"got"`
	// NotRun: the machine can run none of the faults.
	NotRun bool `json:"not_run,omitempty"`
	// faults are those whose cycles count; none: what counts is the figure of the goal's name.
	faults []string
}

// goals of the normal profile.
var goals = []goal{
	{Name: "kills under load", Want: 300, faults: []string{"kill", "kill-fsync", "kill-connect", "kill-slow-disk"}},
	{Name: "power cuts", Want: 60, faults: []string{"power-cut"}},
	{Name: "messages to three handlers", Want: 20_000},
	{Name: "target faults", Want: 5_000},
}

// measure holds the outcomes against goals.
func (r *report) measure(goals []goal) {
	for _, g := range goals {
		g.NotRun = len(g.faults) > 0
		for _, o := range r.Outcomes {
			if len(g.faults) == 0 {
				g.Got += o.Figures[g.Name]
			} else if slices.Contains(g.faults, o.Fault) {
				g.Got += o.Fired
				g.NotRun = g.NotRun && o.NotRun != ""
			}
		}
		if g.Got < g.Want && !g.NotRun {
			r.Short++
		}
		r.Goals = append(r.Goals, g)
	}
}

// code is what the proof ends with. A fault that was not run, since the machine cannot, is told but is nobody's fault.
func (r *report) code() int {
	switch {
	case r.Broken > 0:
		return exitBroken
	case r.Short > 0:
		return exitShort
	}
	return 0
}

func (r *report) add(o outcome) {
	r.Outcomes = append(r.Outcomes, o)
	r.Broken += len(o.Violations) + o.Beyond
	if o.Broken != "" {
		r.Broken++
	}
	if o.NotRun != "" {
		r.NotRun++
	}
	if o.Short != "" {
		r.Short++
	}
}

func (r *report) json(out io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// table prints the report for a person.
func (r *report) table(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "FAULT\tPLANNED\tLOAD RAN\tFIRED\tVIOLATIONS\tSECONDS\t")
	total := map[string]int{}
	for _, o := range r.Outcomes {
		if o.NotRun != "" {
			fmt.Fprintf(table, "%s\t%d\t–\t–\t–\t\tnot run: %s\n", o.Fault, o.Planned, o.NotRun)
			continue
		}
		about := o.About
		if o.Short != "" {
			about = fmt.Sprintf("SHORT (%s): %s", o.Short, about)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.0f\t%s\n", o.Fault, o.Planned, o.Cycles, o.Fired, len(o.Violations)+o.Beyond, o.Seconds, about)
		for name, n := range o.Figures {
			total[name] += n
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	var figures []string
	for _, name := range slices.Sorted(maps.Keys(total)) {
		figures = append(figures, fmt.Sprintf("%d %s", total[name], name))
	}
	fmt.Fprintf(out, "\n%s; seed %d; %.0f seconds\n", strings.Join(figures, ", "), r.Seed, r.Seconds)
	for _, g := range r.Goals {
		mark := "reached"
		if g.NotRun {
			mark = "not run"
		} else if g.Got < g.Want {
			mark = "SHORT"
		}
		fmt.Fprintf(out, "%-7s  %d %s of %d\n", mark, g.Got, g.Name, g.Want)
	}
	for _, o := range r.Outcomes {
		for _, v := range o.Violations {
			fmt.Fprintf(out, "VIOLATION  %s  %s: %s\n", o.Fault, v.Invariant, v.Sentence)
		}
		if o.Beyond > 0 {
			fmt.Fprintf(out, "VIOLATION  %s  and %d more\n", o.Fault, o.Beyond)
		}
		if o.Broken != "" {
			fmt.Fprintf(out, "BROKEN     %s  %s\n", o.Fault, o.Broken)
		}
	}
	fmt.Fprintf(out, "%d violations", r.Broken)
	if r.NotRun > 0 {
		fmt.Fprintf(out, "; %d faults were not run", r.NotRun)
	}
	if r.Short > 0 {
		fmt.Fprintf(out, "; %d numbers were not reached", r.Short)
	}
	fmt.Fprintln(out)
	return nil
}
