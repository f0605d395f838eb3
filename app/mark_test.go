package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
)

// TestALostTailExits75 kills the program and takes from its files what a bad disk or a careless hand would: no start goes on silently, nothing
// of the evidence is touched, and the loss is taken only when the operator says so, once, by name.
func TestALostTailExits75(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := start(t, folder)
	token := newToken(t, folder)
	for n := range 20 { // commits without a message count as well
		p.must(t, token, http.MethodPost, "/v1/transactions", fmt.Sprintf(`{"changes":[{"op":"put","collection":"c","id":"%d","body":{"n":%d}}]}`, n, n), http.StatusCreated)
	}
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
	for name, damage := range map[string]func(t *testing.T, database string) error{
		"WAL halved": func(t *testing.T, database string) error {
			info, err := os.Stat(database + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			return os.Truncate(database+"-wal", info.Size()/2)
		},
		"a bit flipped in the WAL": func(t *testing.T, database string) error {
			text, err := os.ReadFile(database + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(database+"-wal", text, 0o600)
		},
		"WAL emptied":    func(_ *testing.T, database string) error { return os.Truncate(database+"-wal", 0) },
		"WAL removed":    func(_ *testing.T, database string) error { return os.Remove(database + "-wal") },
		"database gone":  func(_ *testing.T, database string) error { return os.Remove(database) },
		"database empty": func(_ *testing.T, database string) error { return os.Truncate(database, 0) },
		"nothing at all": nil,
		"mark lost":      func(_ *testing.T, database string) error { return os.Remove(database + ".mark") },
		"mark unreadable": func(_ *testing.T, database string) error {
			return os.WriteFile(database+".mark", make([]byte, 64), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := copyFolder(t, folder)
			database := filepath.Join(copied, DatabaseName)
			if damage != nil {
				if err := damage(t, database); err != nil {
					t.Fatal(err)
				}
			}
			if damage == nil || strings.HasPrefix(name, "mark ") {
				stop(t, start(t, copied))
				return
			}
			before := contents(t, database)
			refused := launch(t, copied)
			if code := refused.wait(t); code != cli.ExitIntegrity {
				t.Fatalf("exit %d, want 75", code)
			}
			if said := refused.log.String(); !strings.Contains(said, "lost its latest commits") || !strings.Contains(said, "--accept-lost-tail") {
				t.Errorf("it said: %s", said)
			}
			if after := contents(t, database); after != before {
				t.Errorf("the refused start changed %s, from %s", after, before)
			}
			accepted := start(t, copied, "--accept-lost-tail")
			if audit := string(command(t, "audit", "--json", "--data-dir", copied)); !strings.Contains(audit, `store.accept-lost-tail`) || !strings.Contains(audit, "it had come to commit") && !strings.Contains(audit, "the mark is at commit") {
				t.Errorf("audit: %s", audit)
			}
			stop(t, accepted)
			stop(t, start(t, copied)) // once accepted, it is not asked for again
		})
	}
}

// copyFolder copies the files of a data folder that no process has open.
func copyFolder(t *testing.T, folder string) string {
	t.Helper()
	copied := t.TempDir()
	files, err := filepath.Glob(filepath.Join(folder, "posthorn.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// contents says what is in a database, its WAL and its mark.
func contents(t *testing.T, database string) string {
	t.Helper()
	sums := ""
	for _, suffix := range []string{"", "-wal", ".mark"} {
		text, err := os.ReadFile(database + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x ", sha256.Sum256(text))
	}
	return sums
}

// stop ends a program in good order.
func stop(t *testing.T, p *process) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit %d", code)
	}
}
