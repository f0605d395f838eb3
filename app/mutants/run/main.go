// Command run builds the program wrong in one place at a time, and requires of the test that shows the provision that it fails; without a change
// it has to pass. make mutants runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/posthorn/posthorn/app/mutants"
)

const module = "github.com/posthorn/posthorn/"

func main() {
	only := flag.String("only", "", "run the mutations whose name or provision is in this `LIST`, separated by commas")
	timeout := flag.Duration("timeout", time.Minute, "a test that runs longer hangs, which is noticed as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only, *timeout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, timeout time.Duration) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[name] = name != ""
	}
	sound := map[string]bool{} // tests that pass without a change
	count, missed := 0, []string{}
	for _, m := range mutants.Table {
		if only != "" && !wanted[m.Name] && !wanted[m.Provision] {
			continue
		}
		count++
		began := time.Now()
		verdict, err := try(ctx, root, m, timeout, sound)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			verdict = "BROKEN"
			fmt.Fprintln(os.Stderr, m.Name+":", err)
		}
		if verdict != "caught" && verdict != "hung" {
			missed = append(missed, m.Name)
		}
		fmt.Printf("%-4s %-24s %-7s %5.1fs  %s: %s\n", m.Provision, m.Name, verdict, time.Since(began).Seconds(), m.Test, m.About)
	}
	fmt.Printf("\n%d mutations, %d caught\n", count, count-len(missed))
	if len(missed) > 0 || count == 0 {
		return fmt.Errorf("not caught: %s", strings.Join(missed, ", "))
	}
	return nil
}

// try runs a mutation's test without it, once, and with it.
func try(ctx context.Context, root string, m mutants.Mutation, timeout time.Duration, sound map[string]bool) (verdict string, err error) {
	if !sound[m.Test] {
		if passed, out, err := test(ctx, m.Test, "", 5*timeout); err != nil || !passed {
			return "", fmt.Errorf("%s does not pass without a change: %w\n%s", m.Test, err, out)
		}
		sound[m.Test] = true
	}
	dir, err := os.MkdirTemp("", "posthorn-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	overlay, err := mutants.Overlay(root, dir, m.Changes)
	if err != nil {
		return "", err
	}
	passed, out, err := test(ctx, m.Test, overlay, timeout)
	switch {
	case err != nil:
		return "", err
	case passed:
		return "MISSED", nil
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("it does not build:\n%s", out)
	case strings.Contains(out, "panic: test timed out"):
		return "hung", nil
	}
	return "caught", nil
}

// test runs one test. What it builds itself is changed as well.
func test(ctx context.Context, name, overlay string, timeout time.Duration) (passed bool, out string, err error) {
	pkg, test, _ := strings.Cut(name, ".")
	run := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-failfast", "-timeout", timeout.String(), "-run", "^"+test+"$", module+pkg)
	run.Env = os.Environ()
	if overlay != "" {
		run.Env = append(run.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	text, err := run.CombinedOutput()
	if ctx.Err() != nil {
		return false, "", context.Cause(ctx)
	}
	if err != nil && run.ProcessState == nil {
		return false, "", err
	}
	if strings.Contains(string(text), "no tests to run") {
		return false, "", fmt.Errorf("there is no %s", name)
	}
	return err == nil, string(text), nil
}
