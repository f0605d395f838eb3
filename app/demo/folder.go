package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/regular"
)

// orderPlaced is the event of the README's quick start, declared as its reader would declare one.
const orderPlaced = "order-placed"

// configuration is the demo's own posthorn.yaml. Whoever edits it keeps what he wrote.
const configuration = `# Written by posthorn demo; yours to edit. Delete it to have it written again.

# The built-in receiver listens on this machine, and private addresses are refused unless they are allowed here.
egress:
  allow: ["127.0.0.0/8"]

# A branch of a library, at /desk.
lending: true

# A demo shows within seconds what a product spreads over hours.
settings:
  retry-first: {value: 1s, observation: "demo: a retry should be seen while one looks on"}
  retry-cap: {value: 5s, observation: "demo: a retry should be seen while one looks on"}
  lending-loan-borrowed-version: {value: 2, observation: "demo: whoever reads it here reads version 2"}
`

// folder is the data folder of a demo.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) config() string  { return f.path("posthorn.yaml") }
func (f folder) token() string   { return f.path("token") }
func (f folder) ready() string   { return f.path("ready.json") }
func (f folder) log() string     { return f.path("serve.log") }
func (f folder) journal() string { return f.path("receiver.jsonl") }

// memory is what a demo must know at its next start.
type memory struct {
	// Receiver is the receiver's address: the destination that was created names it.
	Receiver string `json:"receiver"`
	// Secret is the destination's signing secret, which the API shows once.
	Secret string `json:"secret,omitempty"`
}

const memoryFile = "demo.json"

// prepare makes the folder ready for a start and returns what an earlier one left.
func (f folder) prepare() (memory, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return memory{}, fmt.Errorf("make data folder: %w", err)
	}
	remembered, err := f.recall()
	if errors.Is(err, fs.ErrNotExist) {
		// A folder with a database that no demo made is somebody's own, and samples do not belong into it.
		if found, _ := filepath.Glob(f.path("*.db")); len(found) > 0 {
			return memory{}, &Failure{Code: 1, Sentence: string(f) + " is the data folder of a Posthorn that is no demo",
				Advice: "name another with --data-dir"}
		}
		err = f.remember(memory{})
	}
	if err != nil {
		return memory{}, err
	}
	if err := writeAbsent(f.config(), configuration); err != nil {
		return memory{}, fmt.Errorf("write configuration: %w", err)
	}
	_, err = records.NewIntegrationEvent(string(f), orderPlaced, records.Authoritative, []int{1})
	if err != nil && !errors.Is(err, records.ErrExists) {
		return memory{}, err
	}
	return remembered, nil
}

// maxSmall bounds the files that hold the demo's own state and its API token.
const maxSmall = 1 << 20

func (f folder) recall() (memory, error) {
	text, err := regular.Read(f.path(memoryFile), maxSmall)
	if err != nil {
		return memory{}, fmt.Errorf("read demo state: %w", err)
	}
	var m memory
	if err := json.Unmarshal(text, &m); err != nil {
		return memory{}, fmt.Errorf("read demo state %s: %w", f.path(memoryFile), err)
	}
	return m, nil
}

func (f folder) remember(m memory) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write demo state: %w", err)
	}
	if err := replace(f.path(memoryFile), append(text, '\n')); err != nil {
		return fmt.Errorf("write demo state: %w", err)
	}
	return nil
}

// writeAbsent writes a file unless it exists.
func writeAbsent(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// replace writes a file so that a reader finds the old one or the new one, never half of it.
func replace(path string, text []byte) error {
	next := path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
