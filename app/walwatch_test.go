package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWALWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db-wal")
	w := newWALWatch(path)
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want bool) {
		t.Helper()
		if got := w.changed(); got != want {
			t.Errorf("%s: changed %v, want %v", what, got, want)
		}
	}
	old := time.Now().Add(-time.Hour)
	expect("no file", true)
	expect("still none", true)
	write("one", old)
	expect("a first look", true)
	expect("nothing written", false)
	write("two", old.Add(time.Millisecond))
	expect("written over", true)
	expect("nothing written", false)
	write("longer", old.Add(time.Millisecond))
	expect("appended to", true)
	// What was written just now may be written again within the same instant.
	write("longer", time.Now())
	expect("written now", true)
	expect("young", true)
	write("longer", time.Now().Add(time.Hour))
	expect("from the future", true)
	expect("from the future", true)
}
