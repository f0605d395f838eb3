package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/cli"
)

// process is the real program, serving.
type process struct {
	*exec.Cmd
	Ready
	readyFile string
	log       *lockedBuffer
	exited    chan int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts the program; it may not become ready.
func launch(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	return launchBuild(t, binary(t), folder, args...)
}

// launchBuild is launch for another build of the program.
func launchBuild(t *testing.T, build, folder string, args ...string) *process {
	t.Helper()
	p := &process{readyFile: filepath.Join(folder, "ready.json"), log: &lockedBuffer{}, exited: make(chan int, 1)}
	all := append([]string{"serve", "--data-dir", folder, "--ready-file", p.readyFile, "--listen", "127.0.0.1:0"}, args...)
	p.Cmd = exec.Command(build, all...)
	p.Stderr, p.Stdout = p.log, p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		p.exited <- p.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	return p
}

// start starts the program and waits until it is ready.
func start(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	return launch(t, folder, args...).ready(t)
}

// ready waits until the program answers.
func (p *process) ready(t *testing.T) *process {
	t.Helper()
	eventually(t, "ready file", func() bool {
		text, err := os.ReadFile(p.readyFile)
		return err == nil && json.Unmarshal(text, &p.Ready) == nil
	})
	return p
}

func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-p.exited:
		return code
	case <-time.After(time.Minute):
		t.Fatal("the process does not end")
		return 0
	}
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// clients are one for the network and one for the unix socket.
func clients(t *testing.T, socket string) (tcp, unix *http.Client) {
	t.Helper()
	over := func(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
		transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
		return &http.Client{Transport: transport, Timeout: 30 * time.Second}
	}
	var dialer net.Dialer
	return over(dialer.DialContext), over(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	})
}

func TestServeAnswersDrainsAndExits0(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := start(t, folder)
	if p.PID != p.Process.Pid || p.Version != "dev" || !strings.HasPrefix(p.URL, "http://127.0.0.1:") || p.Socket != SocketPath(folder) {
		t.Errorf("ready file %+v", p.Ready)
	}
	if info, err := os.Stat(p.Socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v", info, err)
	}
	tcp, unix := clients(t, p.Socket)
	for name, got := range map[string]int{"network": status(t, tcp, p.URL+"/healthz"), "socket": status(t, unix, "http://posthorn/healthz")} {
		if got < 200 || got > 299 {
			t.Errorf("health over the %s: %d", name, got)
		}
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit %d after SIGTERM", code)
	}
	for _, path := range []string{p.readyFile, p.Socket} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left behind", path)
		}
	}
}

func TestSecondProcessExits73AndHarmsNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := start(t, folder)
	second := launch(t, folder)
	if code := second.wait(t); code != cli.ExitHeld {
		t.Errorf("exit %d, want 73", code)
	}
	if log := second.log.String(); !strings.Contains(log, "hint:") {
		t.Errorf("no hint: %s", log)
	}
	if text, err := os.ReadFile(p.readyFile); err != nil || !bytes.Contains(text, []byte(p.URL)) {
		t.Errorf("ready file of the first: %s, %v", text, err)
	}
	tcp, unix := clients(t, p.Socket)
	if status(t, tcp, p.URL+"/healthz") > 299 || status(t, unix, "http://posthorn/healthz") > 299 {
		t.Error("the first process no longer answers")
	}
}

func TestKilledProcessLeavesNothingInTheWay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := start(t, folder)
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
	if _, err := os.Lstat(p.Socket); err != nil {
		t.Fatalf("the kill left no socket: %v", err)
	}
	if err := os.Remove(p.readyFile); err != nil {
		t.Fatal(err)
	}
	again := start(t, folder)
	_, unix := clients(t, again.Socket)
	if got := status(t, unix, "http://posthorn/healthz"); got > 299 {
		t.Errorf("health: %d", got)
	}
}

func TestNewerSchemaExits74(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	makeNewer(t, folder)
	p := launch(t, folder)
	if code := p.wait(t); code != cli.ExitNewer || !strings.Contains(p.log.String(), "hint:") {
		t.Errorf("exit %d, want 74", code)
	}
}

func TestDamagedDatabaseExits75(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, DatabaseName), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, folder)
	if code := p.wait(t); code != cli.ExitIntegrity {
		t.Errorf("exit %d, want 75", code)
	}
}

func TestRemovedDatabaseExits70(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := start(t, folder)
	if err := os.Remove(filepath.Join(folder, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitStorage || !strings.Contains(p.log.String(), DatabaseName) {
		t.Errorf("exit %d, want 70", code)
	}
	if _, err := os.Stat(p.readyFile); err == nil {
		t.Error("the ready file is left behind")
	}
}

func TestBadStartsAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		args   []string
		code   int
		says   string
	}{
		"network without TLS": {"", []string{"--listen", "0.0.0.0:0"}, cli.ExitUsage, "--insecure-listen"},
		"no address":          {"", []string{"--listen", "nonsense"}, cli.ExitUsage, "host:port"},
		"unknown key":         {"lisen: x\n", nil, cli.ExitFailed, ConfigName + ":1"},
		"missing config":      {"", []string{"--config", "/nowhere/posthorn.yaml"}, cli.ExitFailed, "/nowhere/posthorn.yaml"},
		"unknown setting":     {"settings: {nonsense: {value: 1, observation: x}}\n", nil, cli.ExitFailed, "nonsense"},
		"log level":           {"", []string{"--log-level", "loud"}, cli.ExitUsage, "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, ConfigName), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			p := launch(t, folder, c.args...)
			if code := p.wait(t); code != c.code || !strings.Contains(p.log.String(), c.says) {
				t.Errorf("exit %d, want %d with %q", code, c.code, c.says)
			}
			if _, err := os.Stat(filepath.Join(folder, DatabaseName)); err == nil {
				t.Error("a database was made")
			}
		})
	}
}

func TestLongDataFolderHasItsSocketElsewhere(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), strings.Repeat("d", 110))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, folder)
	if len(p.Socket) > maxSocketPath || strings.HasPrefix(p.Socket, folder) {
		t.Errorf("socket at %s", p.Socket)
	}
	_, unix := clients(t, p.Socket)
	if got := status(t, unix, "http://posthorn/healthz"); got > 299 {
		t.Errorf("health: %d", got)
	}
	p.signal(t, syscall.SIGTERM)
	p.wait(t)
}

func TestForeignHostsAreRefusedOnTheNetwork(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	tcp, _ := clients(t, p.Socket)
	answer, err := tcp.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("%d, want 421", answer.StatusCode)
	}
}

func TestStopBeforeReadyIsNoFailure(t *testing.T) {
	t.Parallel()
	// The context ends before the start, or at some place in it.
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		options := testOptions(t, t.TempDir())
		options.Config.Listen = "127.0.0.1:0"
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(after, cancel)
		if err := Serve(ctx, options, ""); err != nil {
			t.Errorf("told to stop after %s: %v", after, err)
		}
		timer.Stop()
		cancel()
	}
}
