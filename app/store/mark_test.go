package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestMarkAndDatabase opens a database and its mark in every relation that they can have.
func TestMarkAndDatabase(t *testing.T) {
	t.Parallel()
	opt := testOptions(t, filepath.Join(t.TempDir(), "p.db"))
	work := func() {
		t.Helper()
		s, err := Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if s.Lost() != nil {
			t.Errorf("lost: %v", s.Lost())
		}
		write(t, s, `INSERT INTO note(body) VALUES (x'00')`)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work()
	older, err := os.ReadFile(opt.Path)
	if err != nil {
		t.Fatal(err)
	}
	work()
	// Another program that looks into the file writes the WAL back and removes it.
	foreignDB(t, opt.Path, `SELECT count(*) FROM note`)
	work()
	newer, err := os.ReadFile(opt.Path)
	if err != nil {
		t.Fatal(err)
	}
	// A mark behind the database, as after a power cut, is moved on.
	if err := os.WriteFile(opt.Path+markSuffix, []byte(markLine(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	work()
	marked, err := readMark(opt.Path + markSuffix)
	if err != nil || marked != 4 {
		t.Errorf("marked %d (%v), want 4", marked, err)
	}
	// Older copies are not gone on with, unless that is accepted.
	for _, copied := range [][]byte{older, newer} {
		if err := os.WriteFile(opt.Path, copied, 0o600); err != nil {
			t.Fatal(err)
		}
		var lost *LostTail
		if _, err := Open(t.Context(), opt); !errors.Is(err, ErrLostTail) || !errors.As(err, &lost) || lost.Marked != 4 {
			t.Fatalf("an older copy was answered %v", err)
		}
	}
	accepting := opt
	accepting.AcceptLostTail = true
	s := openStore(t, accepting)
	if lost := s.Lost(); lost == nil || lost.Found != 3 {
		t.Errorf("lost %v, want the fourth commit", lost)
	}
}

// TestMarkIsBelieved only when it is whole.
func TestMarkIsBelieved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.mark")
	whole := markLine(1234)
	for text, want := range map[string]int64{
		whole: 1234, "": 0, whole[:len(whole)-1]: 0, whole + "x": 0, "posthorn mark: commit 00000000000000009999 check 00000000\n": 0,
		markLine(-1): 0, string(make([]byte, len(whole))): 0,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readMark(path); err != nil || got != want {
			t.Errorf("%q says %d (%v), want %d", text, got, err, want)
		}
	}
}

func BenchmarkMark(b *testing.B) {
	m, err := openMark(filepath.Join(b.TempDir(), "p.mark"), 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer m.close() //nolint:errcheck // of a benchmark
	for n := int64(2); b.Loop(); n++ {
		m.write(n)
	}
}
