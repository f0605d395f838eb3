//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// mutant is a seeded bug of package outbox/mutant, the faults that should catch it, and the invariant that it is about.
type mutant struct {
	name, about string
	faults      []string
	breaks      string
}

func mutants() []mutant {
	return []mutant{
		{"synchronous-normal", "a COMMIT does not wait for the disk", []string{"power-cut"}, "loss"},
		{"synchronous-off", "nothing ever waits for the disk", []string{"power-cut"}, "loss"},
		{"answer-before-commit", "commands are acknowledged before their COMMIT", []string{"write-enospc"}, "loss"},
		{"deferred-begin", "the writer reads first and takes the write lock when it first writes", []string{"foreign-writer"}, "availability"},
		{"doubt-ignored", "after a COMMIT that failed the writer goes on", []string{"fsync-eio"}, "storage"},
		{"any-answer-delivers", "dispatched before, or without, the target's 2xx", []string{"hostile-targets"}, "acceptance"},
		{"fence-ignored", "an attempt is settled whether or not it still has its lease", []string{"stop-past-lease"}, "acceptance"},
		{"new-id-on-retry", "each attempt has a webhook-id of its own", []string{"kill"}, "identity"},
		{"json-reencoded", "payloads are read and written anew before they are sent", []string{"kill"}, "bytes"},
		{"attempt-counted-late", "an attempt is counted when it is settled", []string{"kill"}, "attempts"},
		{"crash-free", "a crash costs the deliveries that it interrupted nothing", []string{"poison"}, "bound"},
		{"wall-clock-lease", "leases run out by the wall clock", []string{"clock-jump"}, "lease"},
		{"retry-after-ignored", "a target's Retry-After is not honoured", []string{"hostile-targets"}, "backoff"},
		{"backoff-ignored", "failed attempts are repeated at once", []string{"kill"}, "backoff"},
		{"bound-ignored", "failed attempts are repeated for ever", []string{"hopeless-target"}, "bound"},
		{"tenants-mixed", "a claim finds its message by its id alone, which another tenant may have given too", []string{"kill"}, "tenants"},
		{"order-skipped", "a delivery that waits for its retry lets the next of its key pass", []string{"kill"}, "order"},
		{"hash-unchecked", "payloads are not compared with their hash", []string{"flipped-bits"}, "bytes"},
		{"audit-outside", "the audit rows of a replay have a transaction of their own", []string{"replay-killed"}, "audit"},
		{"dead-letters-purged", "retention takes dead letters as it takes dispatched messages", []string{"retention-killed"}, "dead letters"},
		{"lock-free", "the data folder is not locked", []string{"twins"}, "lock"},
		{"mark-unread", "a database that has lost its latest commits is gone on with", []string{"wal-lost"}, "loss"},
		{"file-unwatched", "nobody looks whether the database is still there", []string{"unlink"}, "storage"},
	}
}

// control is the build for the seeded bugs without any of them: it must break nothing, or a catch would mean nothing.
const control = ""

// trialOutcome is what became of one seeded bug.
type trialOutcome struct {
	Mutant  string  `json:"mutant"`
	About   string  `json:"about"`
	Caught  bool    `json:"caught"`
	Fault   string  `json:"fault,omitempty"`
	By      string  `json:"by,omitempty"` // the invariants that it broke, the one that it is about first where it is among them
	Shown   string  `json:"shown,omitempty"`
	NotRun  string  `json:"not_run,omitempty"`
	Seconds float64 `json:"seconds"`
}

// proveMutants runs every seeded bug against its faults. It is broken when one is missed, or when the control is caught.
func proveMutants(ctx context.Context, f flags, out, errOut io.Writer) (code int, err error) {
	tell := teller(errOut)
	tell("building posthorn with its seeded bugs")
	m, err := newMachine(ctx, f.binary, f.seed, "mutants")
	if err != nil {
		return 0, err
	}
	m.keep = f.keep
	defer context.AfterFunc(ctx, func() { m.stopped.Store(true) })()
	defer func() {
		if closeErr := m.close(); err == nil {
			err = closeErr
		}
	}()
	list := mutants()
	var every []string
	for _, x := range list {
		for _, name := range x.faults {
			if !slices.Contains(every, name) {
				every = append(every, name)
			}
		}
	}
	list = append([]mutant{{control, "none of them: the control", every, ""}}, list...)
	var table []trialOutcome
	for _, x := range list {
		if len(f.only) > 0 && !slices.Contains(f.only, x.name) {
			continue
		}
		t := tryMutant(ctx, m, x, f.cycles, func(text string) { tell(x.name + ": " + text) })
		if ctx.Err() != nil {
			return exitShort, errors.Join(errors.New("ended by hand"), printMutants(out, table))
		}
		if t.Caught != (x.name != control) && t.NotRun == "" {
			code = exitBroken
		}
		table = append(table, t)
	}
	tell("")
	if f.json {
		text, err := json.MarshalIndent(table, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return code, err
	}
	return code, printMutants(out, table)
}

// tryMutant runs faults until one of them catches the bug.
func tryMutant(ctx context.Context, m *machine, x mutant, cycles int, tell func(string)) trialOutcome {
	t := trialOutcome{Mutant: x.name, About: x.about}
	began := time.Now()
	defer func() { t.Seconds = time.Since(began).Seconds() }()
	m.mutant = x.name
	for _, fault := range faults() {
		if !slices.Contains(x.faults, fault.name) || t.Caught {
			continue
		}
		n := fault.cycles[brief]
		if cycles > 0 {
			n = cycles
		}
		o := prove(ctx, m, fault, max(1, n), tell)
		switch {
		case o.NotRun != "":
			t.NotRun = o.NotRun
		case o.Broken != "":
			t.Caught, t.Fault, t.By, t.Shown = true, o.Fault, "start", o.Broken
		case len(o.Violations) > 0:
			t.Caught, t.Fault = true, o.Fault
			t.By, t.Shown = broken(o.Violations, x.breaks)
		}
	}
	t.Seconds = time.Since(began).Seconds()
	return t
}

// broken lists the invariants that violations are of, a certain one first, and tells the first of them in its own words.
func broken(violations []violation, first string) (invariants, sentence string) {
	var names []string
	for _, v := range violations {
		switch {
		case v.Invariant == first && (len(names) == 0 || names[0] != first):
			names, sentence = append([]string{first}, names...), v.Sentence
		case !slices.Contains(names, v.Invariant):
			names = append(names, v.Invariant)
		}
	}
	return strings.Join(names, ", "), cmp.Or(sentence, violations[0].Sentence)
}

func printMutants(out io.Writer, table []trialOutcome) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SEEDED BUG\tRESULT\tFAULT\tINVARIANTS\tSECONDS\tFIRST SHOWN BY")
	caught, run := 0, 0
	for _, t := range table {
		name, result := t.Mutant, "missed"
		switch {
		case name == control && t.Caught:
			name, result = "(none)", "NOT CLEAN"
		case name == control:
			name, result = "(none)", "clean"
		case t.NotRun != "":
			result = "not run: " + t.NotRun
		case t.Caught:
			result = "caught"
			caught++
		}
		if t.Mutant != control {
			run++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%.110s\n", name, result, t.Fault, t.By, t.Seconds, t.Shown)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%d of %d caught\n", caught, run)
	return err
}
