package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTheDataFolderHoldsFiles puts a pipe, a folder and a device where a file of the data folder is read: the start says so, and does not wait.
func TestTheDataFolderHoldsFiles(t *testing.T) {
	t.Parallel()
	build, whole := Build{Schema: schema(t), Version: "test"}, t.TempDir()
	first, err := openLocal(t.Context(), build, whole, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ConfigName, KeyName, besideName, DatabaseName, DatabaseName + ".mark", DatabaseName + ".posthorn.lock", "records/integration-events/order-placed.md"} {
		for what, put := range map[string]func(string) error{
			"a named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
			"a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			folder := t.TempDir()
			if name != besideName {
				folder = filepath.Join(folder, "data")
				if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(folder, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() {
				opened, err := openLocal(t.Context(), build, folder, "", "")
				if err == nil {
					_ = opened.Close()
				}
				answered <- exit(err)
			}()
			select {
			case err := <-answered:
				if err == nil || !strings.Contains(err.Error(), "is "+what+", not a regular file") && !strings.Contains(err.Error(), "a record is a file") {
					t.Errorf("%s is %s: %v", name, what, err)
				}
			case <-time.After(time.Minute):
				t.Errorf("%s is %s: the start waits", name, what)
			}
		}
	}
}
