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
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.0f\t%s\n", o.Fault, o.Planned, o.Cycles, o.Fired, len(o.Violations)+o.Beyond, o.Seconds, o.About)
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
	fmt.Fprintln(out)
	return nil
}
