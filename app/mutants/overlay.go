package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Change replaces a piece of a source file that occurs in it exactly once.
type Change struct {
	File     string // from the root of the module
	Old, New string
}

// Overlay writes what `go build -overlay` wants into dir, and returns its name: the module under root as it would be with the changes. Nothing
// under root is touched. Embedded files can be changed as well. A change whose text is not there exactly once is an error: the source has moved on.
func Overlay(root, dir string, changes []Change) (string, error) {
	texts := map[string]string{}
	for _, change := range changes {
		path := filepath.Join(root, filepath.FromSlash(change.File))
		text, seen := texts[path]
		if !seen {
			read, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("change source: %w", err)
			}
			text = string(read)
		}
		if n := strings.Count(text, change.Old); n != 1 {
			return "", fmt.Errorf("change source: %s has %d times, not once: %s", change.File, n, change.Old)
		}
		texts[path] = strings.Replace(text, change.Old, change.New, 1)
	}
	replace := map[string]string{}
	for path, text := range texts {
		copied := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("change source: %w", err)
		}
		replace[path] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("change source: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", fmt.Errorf("change source: %w", err)
	}
	return overlay, nil
}
