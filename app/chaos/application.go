//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed application.py
var applicationText []byte

// application is another program's process, which keeps orders in a database of its own and stages messages in its own transactions. What it
// did is known from its own journal.
type application struct {
	python, script, database, journal string
	bed                               *bed
	read                              int64 // of the journal, in bytes
	open                              map[string]*command
	places                            map[string]int
	process                           *exec.Cmd
	ended                             chan struct{}
	said                              tail
}

func newApplication(b *bed, database string) (*application, error) {
	a := &application{bed: b, database: database, python: b.machine.python, open: map[string]*command{}, places: map[string]int{},
		script: filepath.Join(b.journals, "application.py"), journal: filepath.Join(b.journals, "application.jsonl")}
	if err := os.WriteFile(a.script, applicationText, 0o644); err != nil {
		return nil, fmt.Errorf("write application: %w", err)
	}
	if err := os.WriteFile(a.journal, nil, 0o644); err != nil {
		return nil, fmt.Errorf("make application's journal: %w", err)
	}
	if u := b.machine.user; u != nil {
		if err := os.Chown(a.journal, int(u.Uid), int(u.Gid)); err != nil {
			return nil, fmt.Errorf("give journal to the application's user: %w", err)
		}
	}
	return a, a.do("create")
}

func (a *application) command(mode string) *exec.Cmd {
	cmd := exec.Command(a.python, a.script, a.database, a.journal, strconv.FormatUint(a.bed.seed, 10), mode)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = a.bed.program.environment(), "/", apart(a.bed.machine.user)
	cmd.Stdout, cmd.Stderr = &a.said, &a.said
	return cmd
}

// do runs it to its end.
func (a *application) do(mode string) error {
	if err := a.command(mode).Run(); err != nil {
		return fmt.Errorf("application: %s: %w: %s", mode, err, a.said.last(3))
	}
	return nil
}

func (a *application) start() error {
	a.process, a.ended = a.command("run"), make(chan struct{})
	if err := a.process.Start(); err != nil {
		return fmt.Errorf("start application: %w", err)
	}
	process, ended := a.process, a.ended
	go func() {
		_ = process.Wait() // it ends by a kill; an end of its own shows in its journal, which no longer grows
		close(ended)
	}()
	return nil
}

// kill ends it at once.
func (a *application) kill() {
	if a.process != nil {
		_ = a.process.Process.Kill()
		<-a.ended
		a.process = nil
	}
}

// settle finds out what became of what the last kill interrupted.
func (a *application) settle() error {
	a.kill()
	if err := a.do("resolve"); err != nil {
		return err
	}
	_, err := a.learn()
	return err
}

// entry is a line of the application's journal.
type entry struct {
	What, Key, Tenant, Error string
	Resolved                 bool
	Messages                 []struct {
		Type, ID, SHA256 string
		OrderingKey      string `json:"ordering_key"`
	}
}

// learn brings the ledger up to the application's journal, and says how many transactions were committed.
func (a *application) learn() (committed int, err error) {
	file, err := os.Open(a.journal)
	if err != nil {
		return 0, fmt.Errorf("read application's journal: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, a.read, 1<<40))
	if err != nil {
		return 0, fmt.Errorf("read application's journal: %w", err)
	}
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return committed, nil
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return committed, fmt.Errorf("read application's journal: %w", err)
		}
		if a.take(e) {
			committed++
		}
		text, a.read = rest, a.read+int64(len(line))+1
	}
}

// take enters one line.
func (a *application) take(e entry) (committed bool) {
	if e.What == "begin" {
		c := &command{tenant: e.Tenant, key: e.Key, document: e.Key}
		for _, m := range e.Messages {
			c.messages = append(c.messages, &message{tenant: e.Tenant, id: m.ID, kind: m.Type, orderKey: m.OrderingKey, sha256: m.SHA256})
		}
		a.open[e.Key] = c
		a.bed.ledger.send(c)
		return false
	}
	c := a.open[e.Key]
	if c == nil {
		a.bed.violate("answer", "the application's journal settles %s twice", e.Key)
		return false
	}
	delete(a.open, e.Key)
	if e.Error != "" {
		a.bed.violate("application", "a transaction of the application failed: %s", e.Error)
	}
	if e.Resolved {
		a.bed.resolved.Add(1)
	}
	if e.What != "committed" {
		a.bed.ledger.settle(c, refused)
		return false
	}
	for _, m := range c.messages {
		if m.orderKey != "" {
			a.places[m.orderKey]++
			m.place = a.places[m.orderKey]
		}
	}
	a.bed.ledger.settle(c, acknowledged)
	return true
}

// works waits until it has committed something.
func (a *application) works(ctx context.Context) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if committed, err := a.learn(); err != nil || committed > 0 {
			return err
		}
		select {
		case <-a.ended:
			return fmt.Errorf("the application ended: %s", a.said.last(3))
		default:
		}
	}
	return errors.New("the application committed nothing for 30 seconds")
}

func besideFaults() []fault {
	return []fault{{name: "beside", about: "a Python program and `serve --db` on its database, one or both killed at random", needs: []need{needPython},
		cycles: [3]int{10, 100, 1000}, seconds: 75, bed: options{beside: true}, cycle: killBeside,
		after: func(_ context.Context, b *bed) error { return b.application.settle() }}}
}

// killBeside kills the application, the program, or both while the one writes and the other delivers.
func killBeside(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	a := b.application
	if a.process == nil {
		if err := a.start(); err != nil {
			return false, err
		}
	}
	if err := a.works(ctx); err != nil {
		return false, err
	}
	time.Sleep(between(random, 0, 100*time.Millisecond))
	which := random.IntN(3)
	if which != 0 {
		b.program.kill()
	}
	if which != 1 {
		a.kill()
	}
	if which != 0 {
		time.Sleep(between(random, 0, 30*time.Millisecond)) // the application goes on by itself
		if err := b.restart(ctx); err != nil {
			return true, err
		}
	}
	_, err := a.learn()
	return true, err
}

// probePython finds a Python that the program's user may run, and whose SQLite the contract works on.
func (m *machine) probePython(ctx context.Context) error {
	last := errors.New("no python3 is installed")
	for _, path := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(path)
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, path, "-c", "import sqlite3, sys; sys.exit(sqlite3.sqlite_version_info < (3, 37))")
		cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}, "/", apart(m.user)
		out, err := cmd.CombinedOutput()
		if err == nil {
			m.python = path
			return nil
		}
		last = fmt.Errorf("%s: %s", path, firstLine(out, err))
	}
	return last
}
