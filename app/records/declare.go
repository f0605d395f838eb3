package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrExists is returned, wrapped, where a record of that name already stands; nothing is overwritten.
var ErrExists = errors.New("the record exists already")

// OverlayDir is where a data folder keeps its user's own records.
func OverlayDir(dataDir string) string { return filepath.Join(dataDir, "records") }

// NewIntegrationEvent declares an outbound event in the overlay of a data folder, which need not exist yet, and returns the path of
// the file. The payload of each version is classified as internal as a whole and has no schema; the file says how to go on.
func NewIntegrationEvent(dataDir, eventType string, trust Trust, versions []int) (string, error) {
	if err := CheckID(eventType); err != nil {
		return "", err
	}
	text := scaffold(eventType, trust, versions)
	record, err := readRecord(KindIntegrationEvent, eventType, Overlay, eventType+".md", []byte(text))
	if err != nil {
		return "", fmt.Errorf("declare %s: %w", eventType, err)
	}
	builtIn, err := Load(nil)
	if err != nil {
		return "", err
	}
	if _, ok := builtIn.Get(record.About().Ref()); ok {
		return "", fmt.Errorf("declare %s: it is built in: %w", eventType, ErrExists)
	}
	folder := filepath.Join(OverlayDir(dataDir), string(KindIntegrationEvent))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("declare %s: %w", eventType, err)
	}
	path := filepath.Join(folder, eventType+".md")
	if err := writeNew(path, text); err != nil {
		return "", fmt.Errorf("declare %s: %w", eventType, err)
	}
	return path, nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, ErrExists)
	} else if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // half a record would stop the next start
	}
	return nil
}

// scaffold is the text of a new record: complete enough to stage, with the places that its owner should think about.
func scaffold(eventType string, trust Trust, versions []int) string {
	var b strings.Builder
	title := strings.ReplaceAll(eventType, "-", " ")
	fmt.Fprintf(&b, `---
title: "%s%s"
direction: outbound
trust: %s
guarantee: at-least-once
boundary: the receiver's 2xx status line
duplicates: a message can come again, with the same id and the same bytes; the receiver keeps the ids it handled
retry_horizon: retry-horizon
runbook: recover-dead-letters
versions:
`, strings.ToUpper(title[:1]), title[1:], trust)
	for _, version := range versions {
		fmt.Fprintf(&b, "  - version: %d\n    fields: {\"*\": internal}\n", version)
	}
	fmt.Fprintf(&b, `---
What happened when %s is emitted, and what a reader may do with it.

`+"`fields`"+` classifies the payload: `+"`\"*\"`"+` stands for every field, and an entry of its own, such as `+"`customer/name: personal`"+`, is
stronger. The classes are public, internal, personal and secret. A `+"`schema`"+` beside it, a JSON Schema, makes Posthorn refuse a payload that
does not match:

    schema:
      type: object
      required: [id]
      properties:
        id: {type: string}
`, eventType)
	return b.String()
}

// Reads lists the schema versions that the record declares, in order.
func (e *IntegrationEvent) Reads() []int {
	numbers := make([]int, len(e.Versions))
	for i, version := range e.Versions {
		numbers[i] = version.Number
	}
	slices.Sort(numbers)
	return numbers
}
