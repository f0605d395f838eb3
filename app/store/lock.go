package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox/mutant"
)

// lockRetry is how often a held lock is tried again.
const lockRetry = 50 * time.Millisecond

// Lock is the right to deliver for one database file. It ends with the process that holds it, so it also says that the process lives.
type Lock struct{ flock *flock.Flock }

// HeldError says who holds a lock. It is an ErrHeld.
type HeldError struct {
	Path string // of the lock file
	PID  int    // 0 when it cannot be told
}

// Error says who holds the lock, and what to do.
func (e *HeldError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("the database is held by %s (%s); stop it first, or let it do the work", who, e.Path)
}

// Unwrap makes a HeldError an ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// LockPath tells where the lock of a database file is.
func LockPath(path string) (string, error) {
	path, err := resolve(path)
	if err != nil {
		return "", fmt.Errorf("find lock file: %w", err)
	}
	return path + ".posthorn.lock", nil
}

// TakeLock takes the lock of a database file, which need not exist yet; its folder must. It waits for a holder up to wait, and then
// answers a HeldError.
func TakeLock(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	path, err := LockPath(path)
	if err != nil {
		return nil, err
	}
	if err := regular.Check(path); err != nil { // opening a pipe would wait for somebody
		return nil, fmt.Errorf("take lock: %w", err)
	}
	deadline := time.Now().Add(wait)
	for {
		f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		locked, err := f.TryLock()
		if err != nil {
			return nil, fmt.Errorf("take lock %s: %w", path, err)
		}
		if locked || mutant.LockFree {
			if lockStands(f) || mutant.LockFree {
				// For the message of whoever comes next; the lock holds without it.
				_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
				return &Lock{f}, nil
			}
			_ = f.Unlock()
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, &HeldError{Path: path, PID: lockHolder(path)}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock: %w", errors.Join(context.Cause(ctx), &HeldError{Path: path, PID: lockHolder(path)}))
		case <-time.After(min(left, lockRetry)):
		}
	}
}

// lockStands says whether the locked file is still the one at the path: if somebody removed it in between, the next process would
// lock another file.
func lockStands(f *flock.Flock) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Path())
	return err == nil && os.SameFile(locked, there)
}

func lockHolder(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 0 {
		return 0
	}
	return pid
}

// Path tells where the lock file is.
func (l *Lock) Path() string { return l.flock.Path() }

// Release gives the lock back. The file stays: whoever waits for it has it open.
func (l *Lock) Release() error {
	_ = os.Truncate(l.flock.Path(), 0)
	if err := l.flock.Unlock(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}
