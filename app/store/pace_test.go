package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPaceFindsItsTime has a program commit so many pages at a time, which are written back by itself at 1,000, or by whoever comes before.
func TestPaceFindsItsTime(t *testing.T) {
	t.Parallel()
	const want, itself = 500, 1000
	for _, tt := range []struct {
		pages     int
		apart     time.Duration
		most, own int // how often it may be written back by us, and by the program
	}{
		{1, 5 * time.Millisecond, 60, 2},
		{3, 5 * time.Millisecond, 170, 2},
		{11, 5 * time.Millisecond, 600, 2},
		{11, time.Second, 600, 2},
		{200, 20 * time.Millisecond, 2500, 5000}, // faster than we may
		{40, 250 * time.Microsecond, 50, 5000},   // as fast as it can
	} {
		p := newPace(want)
		now := time.Now()
		wal, written, ours, itsOwn := 0, int64(0), 0, 0
		for commits := range 20_000 {
			now = now.Add(tt.apart)
			if commits%500 == 0 {
				now = now.Add(time.Minute) // a rest says nothing about what a commit writes
			}
			wal += tt.pages
			if commits%4 == 0 {
				wal, written = wal+tt.pages, written+int64(tt.pages) // a turn's
			}
			if wal >= itself {
				wal, itsOwn = 0, itsOwn+1
			}
			if p.saw(written, want, now) {
				p.learn(wal, written)
				wal, ours = 0, ours+1
			}
		}
		if itsOwn > tt.own || ours > tt.most || ours == 0 {
			t.Errorf("%d pages every %s: written back %d times by us, %d by the program, want at most %d and %d", tt.pages, tt.apart, ours, itsOwn, tt.most, tt.own)
		}
	}
}

// TestForeignCommitsAreWrittenBack has another connection commit, with SQLite's own checkpoints off, and the store told of it.
func TestForeignCommitsAreWrittenBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	foreignDB(t, path, "PRAGMA journal_mode = WAL;"+testSchema+`INSERT INTO posthorn_meta VALUES ('schema_version', 1);`)
	opt := testOptions(t, path)
	opt.Create, opt.Guest, opt.Schema, opt.CheckpointPages = false, true, "", 50
	s := openStore(t, opt)
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=wal_autocheckpoint(0)&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	for pages := 0; ; pages += 2 {
		if _, err := other.ExecContext(t.Context(), "INSERT INTO note(body) VALUES (zeroblob(9000))"); err != nil {
			t.Fatal(err)
		}
		s.Grown()
		// Only a checkpoint lets the file itself grow.
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.Size() > 1000*4096 {
			return
		}
		if pages > 20_000 {
			t.Fatal("nothing was written back")
		}
	}
}
