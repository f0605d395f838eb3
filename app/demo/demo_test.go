package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/sink"
)

// watch reads the events of a demo.
type watch struct {
	t      *testing.T
	lines  *bufio.Scanner
	events []event
}

// until reads on to an event that fits.
func (w *watch) until(what string, fits func(event) bool) event {
	w.t.Helper()
	for w.lines.Scan() {
		var e event
		if err := json.Unmarshal(w.lines.Bytes(), &e); err != nil {
			w.t.Fatalf("line %q: %v", w.lines.Text(), err)
		}
		w.events = append(w.events, e)
		if fits(e) {
			return e
		}
	}
	w.t.Fatalf("the demo ended before %s; it said %+v", what, w.events)
	return event{}
}

func is(name string) func(event) bool { return func(e event) bool { return e.Event == name } }

// running starts a demo in a process of its own.
func running(t *testing.T, dir string) (*exec.Cmd, *watch) {
	t.Helper()
	command := exec.Command(os.Args[0], dir)
	command.Env = append(os.Environ(), role+"=supervisor")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, &watch{t: t, lines: bufio.NewScanner(out)}
}

// gone waits until a process is no more.
func gone(t *testing.T, pid int) {
	t.Helper()
	for syscall.Kill(pid, 0) == nil {
		// A zombie that init has yet to reap is no orphan.
		if text, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat")); err == nil && strings.Contains(string(text), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func itoa(n int) string { text, _ := json.Marshal(n); return string(text) }

func TestDemoOutlivesKills(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	command, w := running(t, dir)
	started := w.until("start", is("started"))
	if started.Start.URL == "" || started.Start.Receiver == "" || started.PID == 0 {
		t.Fatalf("the start says %+v", started.Start)
	}
	w.until("a delivery", is("delivered"))
	if err := syscall.Kill(started.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ended := w.until("the end of the child", is("ended")); ended.PID != started.PID || !strings.Contains(ended.Note, "killed") {
		t.Errorf("the end says %+v", ended)
	}
	again := w.until("another child", is("ready"))
	if !strings.Contains(again.Note, started.Start.URL) {
		t.Errorf("the address changed from %s: %s", started.Start.URL, again.Note)
	}
	w.until("a delivery by the next", is("delivered"))
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	summary := w.until("the last summary", is("summary"))
	rest, _ := io.ReadAll(strings.NewReader(w.lines.Text()))
	if err := command.Wait(); err != nil {
		t.Errorf("the demo ended with %v; %s", err, rest)
	}
	gone(t, again.PID)
	if _, err := os.Stat(filepath.Join(dir, "drained")); err != nil {
		t.Errorf("the child was not drained: %v", err)
	}
	if summary.Counts.Staged == 0 || summary.Counts.Restarts != 1 {
		t.Errorf("the summary says %+v", summary.Counts)
	}
	inJournal(t, dir, w.events)
}

// inJournal checks that what was said to be staged is in the receiver's journal, verified.
func inJournal(t *testing.T, dir string, events []event) {
	t.Helper()
	text, err := os.ReadFile(folder(dir).journal())
	if err != nil {
		t.Fatal(err)
	}
	handled := map[string]bool{}
	for line := range bytes.Lines(text) {
		var entry sink.Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		handled[entry.ID] = handled[entry.ID] || entry.Handled && entry.Verified
	}
	for _, e := range events {
		if e.Event == "staged" && !handled[e.ID] {
			t.Errorf("%s was staged and never arrived", e.ID)
		}
	}
}

func TestDemoGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var receivers []string
	for range 2 {
		command, w := running(t, dir)
		receivers = append(receivers, w.until("start", is("started")).Start.Receiver)
		w.until("a delivery", is("delivered"))
		if slices.ContainsFunc(w.events, is("refused")) {
			t.Errorf("something was refused: %+v", w.events)
		}
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for w.lines.Scan() {
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	}
	if receivers[0] != receivers[1] {
		t.Errorf("the receiver moved: %v", receivers)
	}
}

func TestDemoGivesUp(t *testing.T) {
	for _, test := range []struct {
		role     string
		code     int
		restarts int
		words    string
	}{
		{"broken", 1, hopeless - 1, "the disk is a potato"},
		{"held", 73, 0, "another process holds"},
	} {
		t.Run(test.role, func(t *testing.T) {
			t.Setenv(role, test.role)
			var out bytes.Buffer
			err := Run(t.Context(), Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Executable: os.Args[0], Out: &out, JSON: true})
			failure := new(Failure)
			if !errors.As(err, &failure) || failure.Code != test.code || !strings.Contains(failure.Sentence, test.words) || failure.Advice == "" {
				t.Fatalf("got %+v", err)
			}
			if restarts := strings.Count(out.String(), `"ended"`); restarts != test.restarts {
				t.Errorf("it was started again %d times, want %d:\n%s", restarts, test.restarts, out.String())
			}
		})
	}
}

func TestDemoRefusesSomebodysData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "posthorn.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(context.Background(), Config{DataDir: dir, Executable: "/bin/false", Out: io.Discard})
	if failure := new(Failure); !errors.As(err, &failure) || failure.Advice == "" {
		t.Errorf("got %v", err)
	}
}
