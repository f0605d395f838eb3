package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// demoEvent is a line of `posthorn demo --json`, as far as this test looks at it.
type demoEvent struct {
	Event, ID, Type string
	PID             int
	Start           struct {
		URL   string
		Token string `json:"token_file"`
	}
}

// TestDemo runs the real demo, kills the process under it, and looks whether anything is lost.
func TestDemo(t *testing.T) {
	t.Parallel()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(short(t), "d")
	command := exec.Command(filepath.Join(bin, "posthorn"), "demo", "--data-dir", dir, "--listen", "127.0.0.1:0", "--every", "25ms", "--json")
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	lines, staged := bufio.NewScanner(out), map[string]bool{}
	until := func(fits func(demoEvent) bool) demoEvent {
		t.Helper()
		for lines.Scan() {
			var e demoEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			if e.Event == "refused" {
				t.Fatalf("refused: %s", lines.Text())
			}
			if e.Event == "staged" {
				staged[e.ID] = true
			}
			if fits(e) {
				return e
			}
		}
		t.Fatalf("the demo ended: %v", lines.Err())
		return demoEvent{}
	}
	started := until(func(e demoEvent) bool { return e.Event == "started" })
	pid := started.PID
	for range 3 {
		until(func(e demoEvent) bool { return len(staged)%20 == 19 })
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		pid = until(func(e demoEvent) bool { return e.Event == "ready" }).PID
		until(func(e demoEvent) bool { return e.Event == "staged" })
	}
	order := placeOrder(t, started)
	until(func(e demoEvent) bool { return e.Event == "delivered" && e.ID == order && e.Type == "order-placed" })

	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	arrived(t, bin, dir, staged)
}

// placeOrder is the curl of the quick start.
func placeOrder(t *testing.T, started demoEvent) string {
	t.Helper()
	token, err := os.ReadFile(started.Start.Token)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, started.Start.URL+"/v1/transactions", strings.NewReader(
		`{"changes":[{"op":"put","collection":"orders","id":"1001","body":{"paid":true}}],"emits":[{"type":"order-placed","payload":{"order":1001},"ordering_key":"orders/1001"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	var answer struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusCreated || len(answer.Messages) != 1 {
		t.Fatalf("%s: %s", response.Status, text)
	}
	return answer.Messages[0].ID
}

// arrived checks that what was staged arrived, or still waits in the data folder.
func arrived(t *testing.T, bin, dir string, staged map[string]bool) {
	t.Helper()
	journal, err := os.ReadFile(filepath.Join(dir, "receiver.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(journal) {
		var entry struct {
			ID                string
			Verified, Handled bool
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Handled && entry.Verified {
			delete(staged, entry.ID)
		}
	}
	list := exec.Command(filepath.Join(bin, "posthorn"), "messages", "list", "--state", "pending", "--limit", "1000", "--json", "--data-dir", dir)
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pending struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(text, &pending); err != nil {
		t.Fatal(err)
	}
	for _, message := range pending.Messages {
		delete(staged, message.ID)
	}
	if len(staged) > 0 {
		t.Errorf("%d messages were staged and are lost: %v", len(staged), staged)
	}
	if len(bytes.TrimSpace(journal)) == 0 {
		t.Error("the receiver's journal is empty")
	}
}
