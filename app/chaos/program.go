//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is one run after another of the real binary on one data folder.
type program struct {
	binary string
	dir    string   // the data folder
	db     string   // the database of another program that this one works beside; empty: its own
	ready  string   // the ready file; outside the mount, in a folder that the program's user may write to
	env    []string // beside the few that every process has
	user   *syscall.Credential
	// begin, unless nil, starts the process in another way.
	begin func(*exec.Cmd) error

	url  string
	boot int
	log  tail

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{}
	exited error
}

var errNotReady = errors.New("the program did not become ready")

// environment is what the program gets: nothing of this process's own settings.
func (p *program) environment() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LANG=C.UTF-8"}, p.env...)
}

// command prepares a run of the binary.
func (p *program) command(args ...string) *exec.Cmd {
	args = append(args, "--data-dir", p.dir)
	if p.db != "" {
		args = append(args, "--db", p.db)
	}
	cmd := exec.Command(p.binary, args...)
	cmd.Env, cmd.Dir = p.environment(), "/"
	cmd.SysProcAttr = apart(p.user)
	return cmd
}

// run runs a command of the program to its end.
func (p *program) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := p.command(args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run posthorn %s: %w", args[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("run posthorn %s: %w: %s%s", strings.Join(args, " "), err, out.String(), stderr.String())
	}
	return out.Bytes(), nil
}

// launch starts the program without waiting for it.
func (p *program) launch() error {
	if err := os.Remove(p.ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	cmd := p.command("serve", "--listen", "127.0.0.1:0", "--ready-file", p.ready)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	begin := (*exec.Cmd).Start
	if p.begin != nil {
		begin = p.begin
	}
	if err := begin(cmd); err != nil {
		return fmt.Errorf("start posthorn serve: %w", err)
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.exited = cmd, ended, nil
	p.boot++
	p.mu.Unlock()
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.exited = err
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

// start starts the program and waits until it is ready. It returns how long that took.
func (p *program) start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := p.launch(); err != nil {
		return 0, err
	}
	return time.Since(began), p.await(ctx, 60*time.Second)
}

// await waits until the program is ready.
func (p *program) await(ctx context.Context, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		var said struct {
			URL string
			PID int
		}
		if text, err := os.ReadFile(p.ready); err == nil && json.Unmarshal(text, &said) == nil && said.PID == p.pid() {
			p.url = said.URL
			return nil
		}
		if p.gone() {
			return fmt.Errorf("%w: exit %d (%s): %s", errNotReady, p.exitCode(), fmt.Sprint(p.exited), p.log.last(4))
		}
		time.Sleep(3 * time.Millisecond)
	}
	p.kill()
	return fmt.Errorf("%w within %s: %s", errNotReady, limit, p.log.last(4))
}

func (p *program) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// gone says whether the process has ended.
func (p *program) gone() bool {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// wait waits for the end of the process.
func (p *program) wait(limit time.Duration) bool {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// exitCode is what the last process ended with; minus the signal when it was one.
func (p *program) exitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.ProcessState == nil {
		return 0
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// kill ends the process at once.
func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	p.wait(10 * time.Second)
}

// freeze stops the process and waits until it stands still.
func (p *program) freeze() {
	p.signal(syscall.SIGSTOP)
	for range 1000 {
		if state := p.state(); p.gone() || state == "T" || state == "t" {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// state is the process's state as the kernel tells it.
func (p *program) state() string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid()), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > 2*tailBytes {
		t.text = append([]byte(nil), t.text[len(t.text)-tailBytes:]...)
	}
	return len(b), nil
}

// last returns the last lines.
func (t *tail) last(lines int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
