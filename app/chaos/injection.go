//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// injection is a strace that is attached to the program and makes system calls of it fail, take long, or kill.
type injection struct {
	cmd  *exec.Cmd
	path string
	done chan struct{}
}

// inject attaches to the running program. calls are system calls, what is a strace injection: "error=EIO:when=3".
func (b *bed) inject(calls, what string, only ...string) (*injection, error) {
	file, err := os.CreateTemp(b.journals, "strace-*")
	if err != nil {
		return nil, fmt.Errorf("make strace log: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("make strace log: %w", err)
	}
	args := []string{"-f", "-q", "-y", "-ttt", "-e", "trace=" + calls, "-e", "signal=none", "-e", "inject=" + calls + ":" + what, "-o", file.Name(), "-p", strconv.Itoa(b.program.pid())}
	for _, path := range only {
		args = append(args, "-P", path)
	}
	i := &injection{cmd: exec.Command("strace", args...), path: file.Name(), done: make(chan struct{})}
	i.cmd.SysProcAttr = apart(nil)
	if err := i.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start strace: %w", err)
	}
	go func() {
		_ = i.cmd.Wait() // its end is the program's, or is asked for
		close(i.done)
	}()
	for range 2000 {
		if traced(b.program.pid()) || b.program.gone() {
			return i, nil
		}
		select {
		case <-i.done:
			return i, nil
		case <-time.After(time.Millisecond):
		}
	}
	i.stop()
	return nil, fmt.Errorf("strace did not attach to process %d", b.program.pid())
}

// traced says whether every thread of a process is being traced.
func traced(pid int) bool {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "status"))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "TracerPid:\t0\n") {
			return false
		}
	}
	return true
}

// stop detaches; the program goes on undisturbed.
func (i *injection) stop() {
	select {
	case <-i.done:
	default:
		_ = i.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-i.done:
		case <-time.After(5 * time.Second):
			_ = i.cmd.Process.Kill()
			<-i.done
		}
	}
}

// release detaches while the program stands still: a call that strace had begun to make fail would otherwise end with an error that nobody chose.
func (i *injection) release(p *program) {
	p.signal(syscall.SIGSTOP)
	for calm, tries := 0, 0; calm < 5 && tries < 400 && !p.gone(); tries++ {
		time.Sleep(5 * time.Millisecond)
		if calm++; !still(p.pid()) {
			calm = 0
		}
	}
	i.stop()
	p.signal(syscall.SIGCONT)
}

// still says whether every thread of a process is stopped.
func still(pid int) bool {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		if err == nil && !strings.HasPrefix(rest, "T") && !strings.HasPrefix(rest, "t") {
			return false
		}
	}
	return true
}

// fired counts the system calls that were interfered with, and tells when the first was.
func (i *injection) fired() (count int, first time.Time) {
	text, err := os.ReadFile(i.path)
	if err != nil {
		return 0, first
	}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "(INJECTED)") && !strings.Contains(line, "(DELAYED)") {
			continue
		}
		if count++; count == 1 {
			for _, field := range strings.Fields(line) {
				if seconds, err := strconv.ParseFloat(field, 64); err == nil && seconds > 1e9 {
					first = time.UnixMicro(int64(seconds * 1e6))
					break
				}
			}
		}
	}
	return count, first
}
