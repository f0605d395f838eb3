package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lockHelper names the database whose lock the test binary holds when it is started again, until its input ends.
const lockHelper = "POSTHORN_TEST_HOLD_LOCK"

func holdLock(path string) {
	lock, err := TakeLock(context.Background(), path, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := lock.Release(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// startHolder starts another process that holds the lock; release makes it give the lock back.
func startHolder(t *testing.T, path string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), lockHelper+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "held" {
		t.Fatalf("the holder said %q (%v)", line, err)
	}
	return cmd, func() { in.Close() }
}

func TestLockBetweenProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	holder, release := startHolder(t, path)
	_, err := TakeLock(t.Context(), path, 10*time.Millisecond)
	var held *HeldError
	if !errors.As(err, &held) || !errors.Is(err, ErrHeld) {
		t.Fatalf("answered %v", err)
	}
	if held.PID != holder.Process.Pid {
		t.Errorf("held by %d, it says; want %d", held.PID, holder.Process.Pid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TakeLock(ctx, path, time.Minute); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrHeld) {
		t.Errorf("a wait that was given up was answered %v", err)
	}
	go release()
	lock, err := TakeLock(t.Context(), path, time.Minute)
	if err != nil {
		t.Fatalf("after the holder gave the lock back: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestLockEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	holder, _ := startHolder(t, path)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lock, err := TakeLock(t.Context(), path, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := lockHolder(lock.Path()); got != os.Getpid() {
		t.Errorf("the lock file names process %d, want %d", got, os.Getpid())
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestLockKnowsTheFileByOneName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, link := filepath.Join(folder, "p.db"), filepath.Join(t.TempDir(), "link.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	lock, err := TakeLock(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), link, 0); !errors.Is(err, ErrHeld) {
		t.Errorf("by a symbolic link, answered %v", err)
	}
	// Whoever removes the lock file makes room for a second lock, but the first process must not take it for the same.
	if err := os.Remove(lock.Path()); err != nil {
		t.Fatal(err)
	}
	second, err := TakeLock(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if lockStands(lock.flock) {
		t.Error("a lock whose file is gone still stands")
	}
	for _, l := range []*Lock{lock, second} {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}
