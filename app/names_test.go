package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// jsonNames lists the names that the Go files under a folder give to fields in JSON, each with a file that does.
func jsonNames(t *testing.T, folder string, skip func(path string) bool) map[string]string {
	t.Helper()
	names := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || skip(path) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if field, ok := node.(*ast.Field); ok && field.Tag != nil {
				tag, _ := strconv.Unquote(field.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if name != "" && name != "-" {
					names[name] = path
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestTheCommandLineReadsWhatIsWritten holds the two sides of the wire together: a field that the command line reads and no answer
// has is always empty, and nothing else would tell.
func TestTheCommandLineReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	folder := "cli"
	written := jsonNames(t, ".", func(path string) bool { return strings.HasPrefix(path, folder+string(filepath.Separator)) })
	read := jsonNames(t, folder, func(path string) bool { return filepath.Base(path) == "install.go" }) // it prints what it makes itself
	if len(written) == 0 || len(read) == 0 {
		t.Fatalf("%d names are written, %d read", len(written), len(read))
	}
	for name, file := range read {
		if written[name] == "" {
			t.Errorf("%s reads %q, which no answer has", file, name)
		}
	}
}
