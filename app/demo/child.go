package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ready is what a process says in its ready file.
type ready struct {
	URL     string `json:"url"`
	Socket  string `json:"socket"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// child is a running `posthorn serve`.
type child struct {
	process *os.Process
	exited  chan struct{} // closed when state is set
	state   *os.ProcessState
}

// start starts the child. Its log goes to a file rather than a pipe, so that it can go on writing when the supervisor is gone.
func start(config Config, listen string) (*child, error) {
	folder := folder(config.DataDir)
	if err := os.RemoveAll(folder.ready()); err != nil {
		return nil, fmt.Errorf("remove ready file: %w", err)
	}
	log, err := os.OpenFile(folder.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	args := []string{"serve",
		"--data-dir", config.DataDir, "--config", folder.config(), "--listen", listen, "--ready-file", folder.ready(), "--log-level", "warn"}
	if config.AcceptLostTail {
		args = append(args, "--accept-lost-tail")
	}
	command := exec.Command(config.Executable, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = attributes()
	c := &child{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel signals the child when the thread that started it ends, so this one lasts as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		c.process = command.Process
		started <- nil
		// An exit that is no success is an answer here, not an error.
		_ = command.Wait()
		c.state = command.ProcessState
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", config.Executable, err)
	}
	return c, nil
}

// ready waits for the child's ready file; false when it exits, or the context ends, before that.
func (c *child) ready(ctx context.Context, folder folder) (ready, bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var said ready
		if text, err := os.ReadFile(folder.ready()); err == nil && json.Unmarshal(text, &said) == nil && said.PID == c.process.Pid {
			return said, true
		}
		select {
		case <-tick.C:
		case <-c.exited:
			return ready{}, false
		case <-ctx.Done():
			return ready{}, false
		}
	}
}

// stop drains the child and waits for it. It is killed when force ends, or when it outlasts any drain.
func (c *child) stop(force <-chan os.Signal) {
	_ = c.process.Signal(syscall.SIGTERM) // fails only when it has exited
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case <-c.exited:
		return
	case <-force:
	case <-patience.C:
	}
	_ = c.process.Kill()
	<-c.exited
}
