//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// machine is what this machine lets a proof do.
type machine struct {
	work   string // the folder for everything; on no mount of a bed
	binary string
	mutant string // a seeded bug, in a binary that was built for it
	seed   uint64
	keep   bool
	user   *syscall.Credential // whom the program runs as; nil: whoever runs this

	python string // where it is, once looked for
	// stopped: somebody has ended the proof by hand.
	stopped atomic.Bool

	mu     sync.Mutex
	probed map[need]error
}

// need is an ability of the machine that a fault depends on.
type need string

const (
	needTrace  need = "tracing"
	needMount  need = "mounts"
	needImage  need = "reflinked images"
	needClock  need = "a clock of its own"
	needPython need = "Python with SQLite 3.37"
)

// nobody is the user that the program runs as where this runs as root.
const nobody = 65534

func newMachine(ctx context.Context, binary string, seed uint64, tags string) (*machine, error) {
	work, err := os.MkdirTemp("", "posthorn-chaos-")
	if err != nil {
		return nil, fmt.Errorf("make work folder: %w", err)
	}
	m := &machine{work: work, binary: binary, seed: seed, probed: map[need]error{}}
	if err := os.Chmod(work, 0o755); err != nil {
		return nil, fmt.Errorf("open work folder: %w", err)
	}
	if os.Getuid() == 0 {
		m.user = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}
	}
	if m.binary == "" {
		m.binary = filepath.Join(work, "posthorn")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-o", m.binary, "github.com/posthorn/posthorn")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("build posthorn: %w: %s", err, out), m.close())
		}
	}
	return m, nil
}

func (m *machine) close() error {
	if m.keep {
		return nil
	}
	return os.RemoveAll(m.work)
}

// able says why the machine cannot do something; nil: it can. It is found out by doing it once.
func (m *machine) able(ctx context.Context, n need) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err, known := m.probed[n]; known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var err error
	switch n {
	case needTrace:
		err = probeTrace(ctx)
	case needMount:
		err = m.probeMount()
	case needImage:
		err = m.probeImage()
	case needClock:
		err = m.probeClock(ctx)
	case needPython:
		err = m.probePython(ctx)
	}
	m.probed[n] = err
	return err
}

// probeTrace lets strace fail a system call of a process.
func probeTrace(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "strace", "-f", "-qq", "-e", "trace=chdir", "-e", "inject=chdir:error=EIO", "sh", "-c", "cd /").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("strace is not installed")
	}
	if !bytes.Contains(out, []byte("INJECTED")) {
		return fmt.Errorf("strace cannot trace here: %s", firstLine(out, err))
	}
	return nil
}

func (m *machine) probeMount() error {
	folder := filepath.Join(m.work, "probe-tmpfs")
	defer os.RemoveAll(folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	t, err := newTmpfs(folder, 1)
	if err != nil {
		return err
	}
	t.close()
	return nil
}

func (m *machine) probeImage() error {
	folder := filepath.Join(m.work, "probe-image")
	defer os.RemoveAll(folder)
	if err := os.MkdirAll(filepath.Join(folder, "mount"), 0o755); err != nil {
		return err
	}
	i, err := newImage(filepath.Join(folder, "outer"), filepath.Join(folder, "mount"))
	if err != nil {
		return err
	}
	defer i.close()
	if err := i.cut(); err != nil {
		return err
	}
	return i.swap()
}

// apart has a process lead a group of its own: what somebody does to end the proof, at a terminal or otherwise, must not reach it too.
func apart(user *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: user}
}

// tool runs a program of the system.
func tool(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = apart(nil)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed", name)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), firstLine(out, err))
	}
	return nil
}

func firstLine(out []byte, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" && err != nil {
		return err.Error()
	}
	return line
}
