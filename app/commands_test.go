package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli"
)

// named is a command line in a text: the program's name, then words that could be commands, arguments and flags.
var named = regexp.MustCompile(`\bposthorn((?: +(?:--[a-z-]+|[A-Za-z][A-Za-z./-]*|'[^']*'|[0-9]+|<[a-z]+>))+)`)

// prose are the words that follow the program's name where no command is meant.
var prose = []string{"COMMAND", "is", "mark", "to", "unless", "with"}

// TestHintsNameCommandsThatExist reads what the program says to people, and what is written about it: a command that is named is there, and so are
// its flags.
func TestHintsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	app := cli.App(cli.Deps{Version: "test"})
	seen := 0
	for file, texts := range spoken(t) {
		for _, text := range texts {
			for _, match := range named.FindAllStringSubmatch(text, -1) {
				words := strings.Fields(match[1])
				if slices.Contains(prose, words[0]) {
					continue
				}
				seen++
				if wrong := misnamed(app, words); wrong != "" {
					t.Errorf("%s says %q: %s", file, match[0], wrong)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// misnamed says what a command line names that is not there.
func misnamed(app *urfave.App, words []string) string {
	commands, flags := app.Commands, app.Flags
	for len(commands) > 0 && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		at := slices.IndexFunc(commands, func(c *urfave.Command) bool { return c.HasName(strings.Trim(words[0], ".")) })
		if at < 0 {
			return "there is no command " + words[0]
		}
		commands, flags, words = commands[at].Subcommands, commands[at].Flags, words[1:]
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && name != "help" && !slices.ContainsFunc(flags, func(f urfave.Flag) bool { return slices.Contains(f.Names(), name) }) {
			return "there is no flag " + word
		}
	}
	return ""
}

// spoken gathers the strings of Go files, and the other texts whole, by file.
func spoken(t *testing.T) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".tools" || entry.Name() == "vendor" || entry.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						texts[path] = append(texts[path], text)
					}
				}
				return true
			})
		case slices.Contains([]string{".js", ".md", ".sql", ".html"}, filepath.Ext(path)):
			text, err := os.ReadFile(path)
			texts[path] = append(texts[path], string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
