package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Ready is what the ready file holds: that the process with this pid answers requests, and where.
type Ready struct {
	URL     string `json:"url"`
	Socket  string `json:"socket"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// write puts the file where it is looked for, whole or not at all.
func (r Ready) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write ready file: %w", err), os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("write ready file: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// removeReady takes the file away, so that nobody takes an earlier process for this one.
func removeReady(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}
