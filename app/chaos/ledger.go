//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// verdict is what this side knows of a command that it sent.
type verdict string

const (
	// doubtful: no answer came. It is resolved by sending the command again with its key.
	doubtful     verdict = "doubtful"
	acknowledged verdict = "acknowledged"
	// refused: the answer said that nothing was changed.
	refused verdict = "refused"
)

// command is one transaction: a document and the messages that it emits.
type command struct {
	tenant   string
	key      string // Idempotency-Key
	body     string
	document string
	mustFail bool // it puts a document in a version that it does not have
	messages []*message

	verdict  verdict
	sent     time.Time // first sent
	answered bool      // its first answer said what became of it
	boot     int       // of the program, when it was first sent
}

// message is one message of a command.
type message struct {
	tenant   string
	id       string
	kind     string // its type
	orderKey string
	place    int // among the messages of its ordering key, in the order in which they were committed
	sha256   string
	command  *command
	flipped  int // the last boot before its stored bytes were changed: it must not arrive in a later one; 0: never
}

// name is unique: two tenants use the same ids.
func (m *message) name() string { return m.tenant + "/" + m.id }

// ledger is the model: every command that was sent and what became of it. It is kept in memory, and written to a journal for whoever has
// to understand a violation.
type ledger struct {
	mu       sync.Mutex
	commands []*command
	messages map[string]*message
	journal  *bufio.Writer
	file     *os.File
	counts   map[verdict]int
}

func newLedger(path string) (*ledger, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	return &ledger{messages: map[string]*message{}, journal: bufio.NewWriter(file), file: file, counts: map[verdict]int{}}, nil
}

// send enters a command before it is sent.
func (l *ledger) send(c *command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.verdict, c.sent = doubtful, time.Now()
	l.counts[doubtful] += len(c.messages)
	l.commands = append(l.commands, c)
	for _, m := range c.messages {
		m.command = c
		l.messages[m.name()] = m
	}
	l.write(c)
}

// settle enters what became of a command.
func (l *ledger) settle(c *command, v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[c.verdict] -= len(c.messages)
	l.counts[v] += len(c.messages)
	c.verdict = v
	l.write(c)
}

func (l *ledger) count(v verdict) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[v]
}

// open lists the commands whose answer was lost.
func (l *ledger) open() []*command {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []*command
	for _, c := range l.commands {
		if c.verdict == doubtful {
			open = append(open, c)
		}
	}
	return open
}

func (l *ledger) write(c *command) {
	ids := make([]string, len(c.messages))
	for i, m := range c.messages {
		ids[i] = m.id
	}
	line, _ := json.Marshal(map[string]any{"at": time.Now().UTC(), "tenant": c.tenant, "key": c.key, "verdict": c.verdict, "boot": c.boot, "messages": ids})
	_, _ = l.journal.Write(append(line, '\n'))
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.journal.Flush(); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return l.file.Close()
}
