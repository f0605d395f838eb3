package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "posthorn-crash-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "posthorn")
	build := exec.Command("go", "build", "-o", binary, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program is one run after another of the real binary on one data folder.
type program struct {
	t      *testing.T
	dir    string
	token  string
	url    string
	cmd    *exec.Cmd
	log    bytes.Buffer
	client *http.Client
}

func newProgram(t *testing.T, config string) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir(), client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := os.WriteFile(filepath.Join(p.dir, "posthorn.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("records", "new", "integration-event", "order-placed", "--trust", "authoritative", "--schema-version", "1")
	var made struct{ Token string }
	if err := json.Unmarshal(p.run("tokens", "create", "--role", "admin", "--json"), &made); err != nil || made.Token == "" {
		t.Fatalf("tokens create: %v", err)
	}
	p.token = made.Token
	t.Cleanup(func() {
		p.kill()
		p.client.CloseIdleConnections()
		if t.Failed() {
			log := p.log.String()
			t.Logf("the program said, at last:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return p
}

// run runs a command of the program on the data folder.
func (p *program) run(args ...string) []byte {
	p.t.Helper()
	cmd := exec.Command(binary, append(args, "--data-dir", p.dir)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("posthorn %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return out
}

// start starts the program and waits until it is ready.
func (p *program) start() {
	p.t.Helper()
	ready := filepath.Join(p.dir, "ready.json")
	_ = os.Remove(ready)
	p.cmd = exec.Command(binary, "serve", "--data-dir", p.dir, "--listen", "127.0.0.1:0", "--ready-file", ready)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for range 1200 {
		var said struct {
			URL string
			PID int
		}
		if text, err := os.ReadFile(ready); err == nil && json.Unmarshal(text, &said) == nil && said.PID == p.cmd.Process.Pid {
			p.url = said.URL
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.kill()
	p.t.Fatalf("the program did not become ready:\n%s", p.log.String())
}

// kill ends the program as a power switch would, apart from the disk.
func (p *program) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// call makes one request and returns the status and the body; status 0 when there was no answer.
func (p *program) call(method, path, body string) (int, []byte) {
	request, err := http.NewRequestWithContext(context.Background(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

func (p *program) must(want int, method, path, body string) []byte {
	p.t.Helper()
	status, text := p.call(method, path, body)
	if status != want {
		p.t.Fatalf("%s %s: status %d, want %d: %s", method, path, status, want, text)
	}
	return text
}

// delivered waits until nothing is pending or processing.
func (p *program) delivered() {
	p.t.Helper()
	var said struct {
		Total struct{ Pending, Processing int64 }
	}
	for range 2400 {
		text := p.must(http.StatusOK, http.MethodGet, "/v1/backlog", "")
		if err := json.Unmarshal(text, &said); err != nil {
			p.t.Fatalf("backlog: %v: %s", err, text)
		}
		if said.Total.Pending == 0 && said.Total.Processing == 0 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.t.Fatalf("never delivered: %+v", said.Total)
}
