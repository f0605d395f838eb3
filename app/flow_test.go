package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/posthorn/posthorn/app/records"
)

// command runs a command of the program and returns what it printed.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	return commandOf(t, binary(t), args...)
}

// commandOf is command for another build of the program.
func commandOf(t *testing.T, build string, args ...string) []byte {
	t.Helper()
	run := exec.Command(build, args...)
	var log bytes.Buffer
	run.Stderr = &log
	out, err := run.Output()
	if err != nil {
		t.Fatalf("posthorn %s: %v\n%s%s", strings.Join(args, " "), err, out, &log)
	}
	return out
}

// newToken makes an admin's token, with the process running or not.
func newToken(t *testing.T, folder string) string {
	t.Helper()
	var created struct{ Token string }
	out := command(t, "tokens", "create", "--role", "admin", "--json", "--data-dir", folder)
	if err := json.Unmarshal(out, &created); err != nil || !strings.HasPrefix(created.Token, "ph_") {
		t.Fatalf("tokens create: %v: %s", err, out)
	}
	return created.Token
}

// call makes one request with a token.
func (p *process) call(t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Content-Type", "application/json")
	tcp, _ := clients(t, p.Socket)
	answer, err := tcp.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (p *process) must(t *testing.T, token, method, path, body string, want int) string {
	t.Helper()
	status, text := p.call(t, token, method, path, body)
	if status != want {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, text)
	}
	return text
}

func allowLoopback(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, ConfigName), []byte(`egress: {allow: ["127.0.0.0/8"]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

const order = `{"emits":[{"type":"order-placed","payload":{"total": 1.50}}]}`

func TestFromOneCommitToWebhookAndFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	bodies := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	t.Cleanup(target.Close)
	allowLoopback(t, folder)
	if _, err := records.NewIntegrationEvent(folder, "order-placed", records.Authoritative, []int{1}); err != nil {
		t.Fatal(err)
	}
	before := newToken(t, folder) // without a process
	p := start(t, folder)
	token := newToken(t, folder) // through the process
	p.must(t, before, http.MethodPost, "/v1/destinations", fmt.Sprintf(`{"name":"shop","kind":"webhook","url":%q,"types":["order-*"]}`, target.URL), 201)
	p.must(t, token, http.MethodPost, "/v1/destinations", `{"name":"archive","kind":"file","path":"orders/all.jsonl","types":["*"]}`, 201)
	p.must(t, token, http.MethodPost, "/v1/transactions", order, 201)
	if body := <-bodies; body != `{"total": 1.50}` {
		t.Errorf("the receiver got %s", body)
	}
	file := filepath.Join(folder, FilesName, "orders", "all.jsonl")
	eventually(t, "a line in the file", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte(`"payload":{"total": 1.50}}`+"\n"))
	})
	if status, text := p.call(t, "", http.MethodGet, "/v1/backlog", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, text)
	}
	var tokens struct {
		Tokens []struct{ ID string }
	}
	if err := json.Unmarshal(command(t, "tokens", "list", "--json", "--data-dir", folder), &tokens); err != nil || len(tokens.Tokens) != 2 {
		t.Fatalf("tokens list: %+v, %v", tokens, err)
	}
	for _, one := range tokens.Tokens {
		command(t, "tokens", "revoke", one.ID, "--data-dir", folder)
	}
	if status, _ := p.call(t, token, http.MethodGet, "/v1/backlog", ""); status != http.StatusUnauthorized {
		t.Errorf("with a revoked token: %d", status)
	}
}

func TestNewRecordIsInEffectWithoutARestart(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(p *process, token string){
		"told":     func(p *process, token string) { p.must(t, token, http.MethodPost, "/v1/records/reload", "", 200) },
		"signal":   func(p *process, _ string) { p.signal(t, syscall.SIGHUP) },
		"by files": func(*process, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			p := start(t, folder)
			token := newToken(t, folder)
			p.must(t, token, http.MethodPost, "/v1/transactions", order, 422)
			path, err := records.NewIntegrationEvent(folder, "order-placed", records.Authoritative, []int{1})
			if err != nil {
				t.Fatal(err)
			}
			tell(p, token)
			eventually(t, "the type may be staged", func() bool {
				status, _ := p.call(t, token, http.MethodPost, "/v1/transactions", order)
				return status == http.StatusCreated
			})
			if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
				t.Fatal(err)
			}
			if text := p.must(t, token, http.MethodPost, "/v1/records/reload", "", 422); !strings.Contains(text, "integration-events/order-placed.md:1") {
				t.Errorf("a wrong record is answered %s", text)
			}
			p.must(t, token, http.MethodPost, "/v1/transactions", order, 201)
		})
	}
}

// slow starts a process with one delivery under way, whose target answers only when told.
func slow(t *testing.T, folder string) (p *process, answer func()) {
	t.Helper()
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller is gone
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(target.Close)
	allowLoopback(t, folder)
	if _, err := records.NewIntegrationEvent(folder, "order-placed", records.Authoritative, []int{1}); err != nil {
		t.Fatal(err)
	}
	p = start(t, folder)
	token := newToken(t, folder)
	p.must(t, token, http.MethodPost, "/v1/destinations", fmt.Sprintf(`{"name":"shop","kind":"webhook","url":%q,"types":["order-*"]}`, target.URL), 201)
	p.must(t, token, http.MethodPost, "/v1/transactions", order, 201)
	<-arrived
	return p, func() { close(release) }
}

func states(t *testing.T, folder string) (states []string) {
	t.Helper()
	var list struct{ Messages []struct{ State string } }
	if err := json.Unmarshal(command(t, "messages", "list", "--json", "--data-dir", folder), &list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Messages {
		states = append(states, m.State)
	}
	return states
}

func TestStopWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p, answer := slow(t, folder)
	p.signal(t, syscall.SIGTERM)
	eventually(t, "it says that it stops", func() bool { return strings.Contains(p.log.String(), "stopping") })
	answer()
	if code := p.wait(t); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := states(t, folder); len(got) != 1 || got[0] != "dispatched" {
		t.Errorf("states %v", got)
	}
}

func TestSecondSignalEndsAtOnceAndLosesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p, _ := slow(t, folder)
	p.signal(t, syscall.SIGTERM)
	eventually(t, "it says that it stops", func() bool { return strings.Contains(p.log.String(), "stopping") })
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
	if got := states(t, folder); len(got) != 1 || got[0] == "dispatched" || got[0] == "dead-letter" {
		t.Errorf("states %v", got)
	}
}
