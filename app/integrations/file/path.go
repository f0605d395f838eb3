package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrInvalidPath is what CheckPath's errors are, by errors.Is.
var ErrInvalidPath = errors.New("invalid destination file")

const maxPath = 1024

// maxName is what the usual file systems allow for one name.
const maxName = 255

var extensions = []string{".jsonl", ".ndjson", ".json", ".log", ".txt"}

// place is a path split at the folder that allows it.
type place struct {
	folder string // absolute, clean, as the operator wrote it
	name   string // relative to folder, inside it
}

// CheckPath judges the path of a Config when its destination is created.
func CheckPath(config Config) error {
	_, err := locate(config)
	return err
}

func locate(config Config) (place, error) {
	path, allow := config.Path, config.Allow
	refuse := func(sentence string) (place, error) { return place{}, fmt.Errorf("%w: %s", ErrInvalidPath, sentence) }
	switch {
	case path == "" || len(path) > maxPath:
		return refuse(fmt.Sprintf("its path is empty or longer than %d bytes", maxPath))
	case !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl):
		return refuse("its path holds control characters or is not UTF-8")
	case len(allow) == 0:
		return refuse("no folder is allowed; the operator can add files: {allow: [...]} to posthorn.yaml")
	case !slices.Contains(extensions, filepath.Ext(path)):
		return refuse("its name must end in one of " + strings.Join(extensions, ", "))
	case slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".."):
		return refuse("its path holds \"..\"")
	case slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return len(name) > maxName }):
		return refuse(fmt.Sprintf("a name in its path is longer than %d bytes", maxName))
	}
	for _, folder := range allow {
		if !filepath.IsAbs(folder) {
			return refuse("a folder in files: {allow: [...]} is not absolute")
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(allow[0], config.Below, path)
	}
	path = filepath.Clean(path)
	for _, folder := range allow {
		folder = filepath.Clean(folder)
		if name, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(name) && name != "." {
			if config.Below != "" && !strings.HasPrefix(filepath.ToSlash(name), config.Below+"/") {
				return refuse("its path must lie below " + filepath.Join(folder, config.Below) + ", the folder of its tenant")
			}
			return place{folder: folder, name: name}, nil
		}
	}
	return refuse("its path lies in no allowed folder; the operator can add its folder to files: {allow: [...]} in posthorn.yaml")
}
