package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceFindsItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, perSecond := range []int{20, 2000, 20_000} {
			p := newPace()
			if !p.reached() {
				t.Error("the first commit waits")
			}
			for range 50 {
				p.adapt(int(time.Duration(perSecond)*p.every/time.Second), 500)
				if p.reached() {
					t.Fatal("a checkpoint follows the other")
				}
				time.Sleep(p.every)
				if !p.reached() {
					t.Fatal("no checkpoint is due after its time")
				}
			}
			want := min(max(500*time.Second/time.Duration(perSecond), paceLeast), paceMost)
			if p.every < want*9/10 || p.every > want*11/10 {
				t.Errorf("%d pages a second: a checkpoint every %s, want %s", perSecond, p.every, want)
			}
		}
		p := newPace()
		for range 50 {
			p.adapt(0, 500)
		}
		if p.every != paceMost {
			t.Errorf("nothing written: every %s", p.every)
		}
	})
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
