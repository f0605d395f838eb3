package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
	"github.com/posthorn/posthorn/app/mutants"
)

// buildOlder builds the program as it was before loan-borrowed had a second version: it neither reads nor declares nor emits it.
func buildOlder(t *testing.T) string {
	t.Helper()
	const events, record, setting = "app/lending/events.go", "app/records/integration-events/loan-borrowed.md", "app/records/settings/lending-loan-borrowed-version.md"
	text, err := os.ReadFile(filepath.Join("..", record))
	if err != nil {
		t.Fatal(err)
	}
	_, second, found := strings.Cut(string(text), "  - version: 2\n")
	second, _, ends := strings.Cut(second, "---\n")
	if !found || !ends {
		t.Fatalf("%s has no second version", record)
	}
	overlay, err := mutants.Overlay(absolute(t, ".."), t.TempDir(), []mutants.Change{
		{File: events, Old: "eventBorrowed, 2)", New: "eventBorrowed, 1)"},
		{File: events, Old: "r.Upcast(eventBorrowed, 1, liftBorrowed)", New: "_ = liftBorrowed"},
		{File: record, Old: "  - version: 2\n" + second, New: ""},
		{File: setting, Old: "most: 2", New: "most: 1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), "posthorn-old")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", overlay, "-ldflags", "-X main.version=old", "-o", older, "..").CombinedOutput(); err != nil {
		t.Fatalf("build the older program: %v\n%s", err, out)
	}
	return older
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTwoReleasesOneAfterTheOther takes one data folder from an older program to a newer one, back, and forward again, as the runbooks
// readers-before-writers and rollback say: whatever each of them staged reaches every handler once, in whichever of them can read it.
func TestTwoReleasesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	older, newer, folder := buildOlder(t), binary(t), t.TempDir()
	configure := func(version int) {
		t.Helper()
		text := fmt.Sprintf("lending: true\nsettings:\n  lending-loan-borrowed-version: {value: %d, observation: a test says so}\n", version)
		if err := os.WriteFile(filepath.Join(folder, ConfigName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(build string) *process {
		t.Helper()
		_ = os.Remove(filepath.Join(folder, "ready.json"))
		return launchBuild(t, build, folder).ready(t)
	}
	borrowed := func(p *process, token string) int {
		t.Helper()
		var statistics struct{ Works []struct{ Borrowed int } }
		if err := json.Unmarshal([]byte(p.must(t, token, http.MethodGet, "/v1/lending/statistics", "", http.StatusOK)), &statistics); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, work := range statistics.Works {
			sum += work.Borrowed
		}
		return sum
	}

	// The older program lends the first copy, and says what it reads.
	configure(1)
	p := serve(older)
	token := newToken(t, folder)
	p.must(t, token, http.MethodPost, "/v1/lending/members", `{"id":"M1","name":"Ada","email":"ada@example.org"}`, http.StatusCreated)
	for n := 1; n <= 4; n++ {
		p.must(t, token, http.MethodPost, "/v1/lending/copies", fmt.Sprintf(`{"id":"C%d","work":"moby-dick","title":"Moby-Dick"}`, n), http.StatusCreated)
	}
	p.must(t, token, http.MethodPost, "/v1/lending/loans", `{"member":"M1","copy":"C1"}`, http.StatusCreated)
	eventually(t, "the first loan is counted", func() bool { return borrowed(p, token) == 1 })
	readers := filepath.Join(t.TempDir(), "readers.json")
	if err := os.WriteFile(readers, commandOf(t, older, "version", "--readers", "--json", "--data-dir", folder), 0o600); err != nil {
		t.Fatal(err)
	}
	// It lets nobody stage what it cannot read, nor would it start to emit it.
	second := `{"type":"loan-borrowed","schema_version":2,"payload":{"loan":"l","member":"M1","copy":"C9","work":"moby-dick","title":"Moby-Dick","due_at":"2026-01-01T00:00:00Z","borrowed_at":"2026-01-01T00:00:00Z","reservation":null}}`
	if status, text := p.call(t, token, http.MethodPost, "/v1/messages", second); status < 400 || status > 499 {
		t.Errorf("the older program staged version 2: %d %s", status, text)
	}
	stop(t, p)
	configure(2)
	if code := launchBuild(t, older, folder).wait(t); code != cli.ExitFailed {
		t.Errorf("the older program, told to emit version 2, exits with %d", code)
	}

	// The newer one reads both, and emits the first until the setting is raised.
	configure(1)
	p = serve(newer)
	p.must(t, token, http.MethodPost, "/v1/lending/loans", `{"member":"M1","copy":"C2"}`, http.StatusCreated)
	eventually(t, "the second loan is counted", func() bool { return borrowed(p, token) == 2 })
	rollbackCheck(t, newer, folder, readers, true, "")
	stop(t, p)
	configure(2)
	commandOf(t, newer, "lending", "borrow", "M1", "C3", "--data-dir", folder) // nothing runs: it is staged, and waits
	listed := rollbackCheck(t, newer, folder, readers, false, "loan-borrowed")
	if listed.SchemaVersion != 2 || listed.State != "pending" {
		t.Errorf("listed %+v", listed)
	}

	// Back to the older one: what it cannot read waits, in sight, and the rest flows.
	configure(1)
	p = serve(older)
	p.must(t, token, http.MethodPost, "/v1/lending/loans", `{"member":"M1","copy":"C4"}`, http.StatusCreated)
	eventually(t, "the fourth loan is counted", func() bool { return borrowed(p, token) == 3 })
	eventually(t, "the third is set aside", func() bool {
		text := p.must(t, token, http.MethodGet, "/v1/messages/"+listed.Message, "", http.StatusOK)
		return strings.Contains(text, `"failure_class":"unreadable"`) && strings.Contains(text, "it waits for one that can") && strings.Contains(text, `"charged":0`)
	})
	rollbackCheck(t, older, folder, readers, false, "loan-borrowed")
	stop(t, p)

	// And forward again.
	p = serve(newer)
	eventually(t, "all four loans are counted", func() bool { return borrowed(p, token) == 4 })
	eventually(t, "nothing is left", func() bool {
		return strings.Contains(p.must(t, token, http.MethodGet, "/v1/messages/"+listed.Message, "", http.StatusOK), `"state":"dispatched"`)
	})
	rollbackCheck(t, newer, folder, readers, true, "")
	stop(t, p)
}

// unread is a delivery that another program could not read.
type unread struct {
	Message, Type, State string
	SchemaVersion        int `json:"schema_version"`
}

// rollbackCheck runs the command of that name and returns the first message that it lists.
func rollbackCheck(t *testing.T, build, folder, readers string, readable bool, listed string) unread {
	t.Helper()
	run := exec.Command(build, "rollback-check", "--to", readers, "--json", "--data-dir", folder)
	out, err := run.Output()
	var answer struct {
		Readable   bool
		Deliveries []unread
	}
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil {
		t.Fatalf("rollback-check: %v, %v: %s", err, jsonErr, out)
	}
	if code := run.ProcessState.ExitCode(); answer.Readable != readable || readable != (code == 0) || readable != (len(answer.Deliveries) == 0) {
		t.Fatalf("rollback-check exits with %d: %s", code, out)
	}
	if readable {
		return unread{}
	}
	if answer.Deliveries[0].Type != listed {
		t.Errorf("rollback-check lists %s", out)
	}
	return answer.Deliveries[0]
}
