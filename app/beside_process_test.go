package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/outbox"
)

// application is another process that works on the database by Python's sqlite3, statement by statement.
const application = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for line in sys.stdin:
    kind, text = json.loads(line)
    try:
        if kind == "backup":  # as the shell's .backup does
            with sqlite3.connect(text) as copy: db.backup(copy)
            answer = "ok"
        elif kind == "restore":
            with sqlite3.connect(text) as copy: copy.backup(db)
            answer = "ok"
        else:
            answer = [list(row) for row in db.execute(text).fetchall()]
    except sqlite3.Error as err:
        answer = "error: %s" % err
    print(json.dumps(answer), flush=True)
`

type appProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

func startApplication(t *testing.T, path string) *appProcess {
	t.Helper()
	p := &appProcess{t: t, cmd: exec.CommandContext(t.Context(), "python3", "-c", application, path)}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = os.Stderr
	p.lines = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.in.Close(); _ = p.cmd.Wait() })
	return p
}

// ask has the application do something, and answers what it says.
func (p *appProcess) ask(kind, text string) string {
	p.t.Helper()
	line, err := json.Marshal([]string{kind, text})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	answer, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return strings.TrimSpace(answer)
}

// must fails the test when the application is refused.
func (p *appProcess) must(kind, text string) string {
	p.t.Helper()
	answer := p.ask(kind, text)
	if strings.HasPrefix(answer, `"error`) {
		p.t.Fatalf("%s %s: %s", kind, text, answer)
	}
	return answer
}

// pay is a transaction of the application.
func (p *appProcess) pay() {
	p.t.Helper()
	p.must("sql", "BEGIN IMMEDIATE")
	for statement := range strings.SplitSeq(pay, "; ") {
		p.must("sql", statement)
	}
	p.must("sql", "COMMIT")
}

// TestWhatAnApplicationDoesWithItsDatabase: delivery goes on, and nothing of it is in the application's way.
func TestWhatAnApplicationDoesWithItsDatabase(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	_ = db.Close()
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	app := startApplication(t, path)
	folder := t.TempDir()
	app.pay()
	<-ids
	for _, step := range [][2]string{
		{"sql", "VACUUM"}, {"sql", "ALTER TABLE orders ADD COLUMN note TEXT"}, {"sql", "ALTER TABLE orders RENAME COLUMN note TO remark"}, {"sql", "CREATE VIEW orders_paid AS SELECT paid FROM orders"},
		{"sql", "ALTER TABLE orders DROP COLUMN remark"}, {"backup", filepath.Join(folder, "backup.db")}, {"sql", "VACUUM INTO '" + filepath.Join(folder, "copy.db") + "'"},
		{"sql", "REINDEX"}, {"sql", "ANALYZE"}, {"sql", "PRAGMA user_version = 7"}, {"sql", "PRAGMA wal_checkpoint(RESTART)"}, {"sql", "PRAGMA optimize"},
	} {
		app.must(step[0], step[1])
		app.pay()
		<-ids
	}
	// While nothing is staged, no snapshot of ours is in the way of a checkpoint that begins the WAL anew.
	eventually(t, "the application truncates the WAL", func() bool {
		if app.ask("sql", "PRAGMA wal_checkpoint(TRUNCATE)") != "[[0, 0, 0]]" {
			return false
		}
		info, err := os.Stat(path + "-wal")
		return err == nil && info.Size() == 0
	})
	// The journal mode cannot be taken from under a running process; the application is told.
	if answer := app.ask("sql", "PRAGMA journal_mode = DELETE"); !strings.Contains(answer, "locked") {
		t.Errorf("journal_mode = DELETE under a running process: %s", answer)
	}
	app.pay()
	<-ids
	if err := a.dispatcher.Down(); err != nil {
		t.Errorf("down: %v", err)
	}
	for _, copied := range []string{"backup.db", "copy.db"} {
		check := startApplication(t, filepath.Join(folder, copied))
		if answer := check.must("sql", "PRAGMA integrity_check"); answer != `[["ok"]]` {
			t.Errorf("%s: %s", copied, answer)
		}
	}
}

// TestAnApplicationThatHoldsTheLock: delivery waits, says so, and goes on by itself.
func TestAnApplicationThatHoldsTheLock(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	_ = db.Close()
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	app := startApplication(t, path)
	app.pay()
	<-ids
	eventually(t, "the first is settled", func() bool {
		return app.ask("sql", "SELECT count(*) FROM outbox_deliveries WHERE state = 'dispatched'") == "[[1]]"
	})
	app.pay()
	app.must("sql", "BEGIN EXCLUSIVE")
	app.must("sql", "UPDATE orders SET paid = 2")
	eventually(t, "the store is busy", func() bool { return errors.Is(a.dispatcher.Down(), outbox.ErrStoreBusy) || len(ids) > 0 })
	app.must("sql", "COMMIT")
	<-ids
	eventually(t, "the store can be used again", func() bool { return a.dispatcher.Down() == nil })

	// One that is killed while it holds the lock has staged nothing.
	app.must("sql", "BEGIN IMMEDIATE")
	for statement := range strings.SplitSeq(pay, "; ") {
		app.must("sql", statement)
	}
	if err := app.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = app.cmd.Wait()
	app = startApplication(t, path)
	if answer := app.must("sql", "SELECT count(*) FROM outbox_messages"); answer != "[[2]]" {
		t.Errorf("after the kill: %s messages", answer)
	}
	app.pay()
	<-ids
}

// TestACopyRestoredUnderARunningProcess: numbers would be given twice, so the process ends and says why.
func TestACopyRestoredUnderARunningProcess(t *testing.T) {
	t.Parallel()
	path, db := shopDB(t)
	_ = db.Close()
	url, ids := receiver(t)
	a := open(t, besideOptions(t, path))
	createShop(t, a, url)
	app := startApplication(t, path)
	copied := filepath.Join(t.TempDir(), "older.db")
	app.pay()
	<-ids
	app.must("backup", copied)
	app.pay()
	<-ids
	eventually(t, "it has seen both", func() bool {
		return app.ask("sql", "SELECT count(*) FROM outbox_deliveries WHERE state = 'dispatched'") == "[[2]]"
	})
	app.must("restore", copied)
	<-a.Failed()
	if err := a.store.Writer.Err(); !errors.Is(err, outbox.ErrRewound) {
		t.Errorf("ended with %v", err)
	}
	if hint := hintOf(outbox.ErrRewound); !strings.Contains(hint, "--accept-lost-tail") {
		t.Errorf("hint %q", hint)
	}
}

func hintOf(err error) string {
	var hinted *exitError
	if !errors.As(exit(err), &hinted) {
		return ""
	}
	return hinted.Hint()
}

// TestWhatIsOnlyInFilesOfOurOwn is refused beside another program's database: it would quietly do nothing.
func TestWhatIsOnlyInFilesOfOurOwn(t *testing.T) {
	t.Parallel()
	path, _ := shopDB(t)
	for name, change := range map[string]func(*Config){
		"lending": func(c *Config) { c.Lending = true },
		"inbound": func(c *Config) { c.Inbound = map[string]inbound.Source{"hr": {}} },
	} {
		options := besideOptions(t, path)
		change(&options.Config)
		a, err := Open(t.Context(), options)
		if a != nil {
			closeNow(t, a)
		}
		if !errors.Is(err, errOwnOnly) || !strings.HasPrefix(err.Error(), name) || hintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
