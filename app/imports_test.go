package app_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/posthorn/posthorn"

// root is the top of the repository, seen from this package.
const root = ".."

// TestImportDirections holds main → app → {outbox, realtime, ui}. Files are parsed rather than listed by the go command, so that a
// file behind a build tag is held to the directions too.
func TestImportDirections(t *testing.T) {
	t.Parallel()
	// What the packages under a folder may import from this module; app may import all of it but main.
	allowed := map[string][]string{
		".":        {"app"},
		"outbox":   {"outbox"},
		"realtime": {"realtime"},
		"ui":       {"ui"},
		"app":      {"app", "outbox", "realtime", "ui"},
	}
	seen := map[string]int{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			// As the go command does: hidden folders and testdata hold no packages.
			if name := entry.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir // a module of its own, which stands for a user's
			}
			return nil
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		folder, _, nested := strings.Cut(rel, "/")
		if !nested {
			folder = "."
		}
		may, known := allowed[folder]
		if !known {
			t.Errorf("%s: Go code in a folder without an import direction", rel)
			return nil
		}
		seen[folder]++
		for _, imported := range moduleImports(t, file) {
			top, _, nested := strings.Cut(imported, "/")
			if !slices.Contains(may, top) || folder == "." && nested {
				t.Errorf("%s imports %q; packages under %q may import only %v", rel, imported, folder, may)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the repository: %v", err)
	}
	if seen["app"] == 0 {
		t.Error("no Go file seen under app: the test looks at the wrong folder")
	}
}

// moduleImports lists what a Go file imports from this module, relative to it; "" is the root itself.
func moduleImports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("parse imports: %v", err)
		return nil
	}
	var imports []string
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: unquote import %s: %v", file, spec.Path.Value, err)
			continue
		}
		if name == module {
			imports = append(imports, "")
		} else if inside, ok := strings.CutPrefix(name, module+"/"); ok {
			imports = append(imports, inside)
		}
	}
	return imports
}

// TestTopLevel holds that the root explains itself: it has the agreed entries, what git ignores, and nothing else.
func TestTopLevel(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"go.mod", "go.sum", "main.go", "schema.sql", "Makefile", "README.md", "LICENSE", "CHANGELOG.md",
		"app", "outbox", "realtime", "ui",
		".git", ".gitignore", ".golangci.yml", ".ci", ".github",
	}
	ignored := ignorePatterns(t)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatalf("read the root: %v", err)
	}
	for _, entry := range entries {
		if !slices.Contains(allowed, entry.Name()) && !matchesAny(t, ignored, entry.Name()) {
			t.Errorf("%s does not belong at the top level", entry.Name())
		}
	}
}

// ignorePatterns reads the patterns of .gitignore that a name at the top level can match.
func ignorePatterns(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatalf("read .gitignore: %v", err)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		line = strings.Trim(strings.TrimSpace(line), "/")
		if line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

func matchesAny(t *testing.T, patterns []string, name string) bool {
	t.Helper()
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		if err != nil {
			t.Fatalf(".gitignore: pattern %q: %v", pattern, err)
		}
		return matched
	})
}
