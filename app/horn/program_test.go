package horn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary is the program under test, built once, by the first test that runs it.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "posthorn")
	build := exec.Command("go", "build", "-o", path, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// scratch is a folder of the whole run.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "posthorn-horn-"); err != nil {
		panic(err)
	}
	code := m.Run()
	closeChromium()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// quickRetries make failures short, and let webhooks reach this machine.
const quickRetries = `
egress:
  allow: ["127.0.0.0/8"]
settings:
  retry-first: {value: 200ms, observation: "a test cannot wait for seconds"}
  retry-attempts: {value: 3, observation: "a test wants to see a dead letter"}
`

// program is one run after another of the real binary, on one data folder and one port.
type program struct {
	t      *testing.T
	dir    string
	port   int
	url    string
	token  string
	cmd    *exec.Cmd
	log    bytes.Buffer
	client *http.Client
}

// newProgram starts the program. Its data folder declares the events order-placed and order-cancelled.
func newProgram(t *testing.T, config string) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir(), port: freePort(t), client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}}
	if err := os.WriteFile(filepath.Join(p.dir, "posthorn.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"order-placed", "order-cancelled"} {
		p.run("records", "new", "integration-event", event, "--trust", "authoritative", "--schema-version", "1")
	}
	var made struct{ Token string }
	if err := json.Unmarshal(p.run("tokens", "create", "--name", "shop", "--role", "admin", "--json"), &made); err != nil || made.Token == "" {
		t.Fatalf("tokens create: %v", err)
	}
	p.token = made.Token
	t.Cleanup(func() {
		p.kill()
		p.client.CloseIdleConnections()
		if t.Failed() {
			log := p.log.String()
			t.Logf("the program said, at last:\n%s", log[max(0, len(log)-4000):])
		}
	})
	p.start()
	return p
}

// freePort finds a port below those that systems hand out, so that nobody is given it while the program is down.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no free port found")
	return 0
}

// run runs a command of the program on the data folder.
func (p *program) run(args ...string) []byte {
	p.t.Helper()
	path, err := binary()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, "--data-dir", p.dir)...)
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
	path, err := binary()
	if err != nil {
		p.t.Fatal(err)
	}
	ready := filepath.Join(p.dir, "ready.json")
	_ = os.Remove(ready)
	p.cmd = exec.Command(path, "serve", "--data-dir", p.dir, "--listen", fmt.Sprintf("127.0.0.1:%d", p.port), "--ready-file", ready)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		var said struct {
			URL string
			PID int
		}
		if text, err := os.ReadFile(ready); err == nil && json.Unmarshal(text, &said) == nil && said.PID == p.cmd.Process.Pid {
			p.url = said.URL
			return
		}
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

// link makes a one-time link as a person at the machine does.
func (p *program) link() string {
	p.t.Helper()
	return strings.TrimSpace(string(p.run("link")))
}

// as makes a request with a credential: "Bearer …" or a cookie "name=value". Like all here it is for the test's own goroutine.
func (p *program) as(credential, method, path, body string) (int, []byte) {
	p.t.Helper()
	status, text, err := p.send(credential, method, path, body)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, text
}

func (p *program) send(credential, method, path, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if strings.HasPrefix(credential, "Bearer ") {
		request.Header.Set("Authorization", credential)
	} else {
		request.Header.Set("Cookie", credential)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, errors.Join(err, response.Body.Close())
}

// must makes a request with the API token and holds its status.
func (p *program) must(want int, method, path, body string) []byte {
	p.t.Helper()
	status, text := p.as("Bearer "+p.token, method, path, body)
	if status != want {
		p.t.Fatalf("%s %s: status %d, want %d: %s", method, path, status, want, text)
	}
	return text
}

// read reads a query into what is given.
func (p *program) read(path string, into any) {
	p.t.Helper()
	if err := json.Unmarshal(p.must(http.StatusOK, http.MethodGet, path, ""), into); err != nil {
		p.t.Fatalf("read %s: %v", path, err)
	}
}

// order posts a transaction as an application does: a document and the event that tells of it. It returns the message's id.
func (p *program) order(number int, event string) string {
	p.t.Helper()
	answer := p.must(http.StatusCreated, http.MethodPost, "/v1/transactions", orderBody(number, event))
	var said struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Messages) != 1 {
		p.t.Fatalf("transaction: %v: %s", err, answer)
	}
	return said.Messages[0].ID
}

func orderBody(number int, event string) string {
	return fmt.Sprintf(
		`{"changes":[{"op":"put","collection":"orders","id":"%d","body":{"order":%d,"event":%q}}],"emits":[{"type":%q,"payload":{"order":%d},"ordering_key":"orders/%d"}]}`,
		number, number, event, event, number, number)
}

// destination makes a webhook for all events.
func (p *program) destination(name, url, types string) {
	p.t.Helper()
	p.must(http.StatusCreated, http.MethodPost, "/v1/destinations", fmt.Sprintf(`{"name":%q,"kind":"webhook","url":%q,"types":[%q]}`, name, url, types))
}
