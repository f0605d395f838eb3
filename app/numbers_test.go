package app_test

import (
	"bufio"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixed lists the numbers that are no settings by reason: lines of a file and its declarations.
const fixed = "testdata/fixed-numbers.txt"

// large is the least whole number that is taken for a bound.
const large = 100

// TestNumbersThatShouldBeSettings finds durations, and large numbers in constants, that stand in code. Whatever an operator may have a reason
// to change is a setting record; a number that nobody has is written down with the reason.
func TestNumbersThatShouldBeSettings(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	file, err := os.Open(fixed)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		path, names, _ := strings.Cut(lines.Text(), ":")
		if strings.HasPrefix(path, "#") {
			continue
		}
		for _, name := range strings.Fields(names) {
			known[path+" "+name] = false
		}
	}
	for _, found := range numbersIn(t, filepath.Join(root, "app"), filepath.Join(root, "outbox"), filepath.Join(root, "realtime")) {
		if _, ok := known[found]; !ok {
			t.Errorf("%s: read this number from a setting record, or write down in app/%s why it is none", found, fixed)
		}
		known[found] = true
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !known[name] {
			t.Errorf("%s: %s has no number any more", fixed, name)
		}
	}
}

// besides are the folders of programs that try the product out or measure it.
var besides = []string{"app/bench", "app/chaos", "app/crash", "app/demo", "app/horn", "app/mutants", "app/need", "app/sink", "outbox/examples"}

// numbersIn lists the declarations under folders that hold a number: "outbox/lane.go widenEvery".
func numbersIn(t *testing.T, folders ...string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			rel = filepath.ToSlash(rel)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (slices.Contains(besides, rel) || entry.Name() == "testdata"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
				return nil
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, decl := range parsed.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if decl.Body != nil && isNumbered(decl.Body, false) {
						found[rel+" "+decl.Name.Name] = true
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						value, ok := spec.(*ast.ValueSpec)
						if !ok {
							continue
						}
						for i, v := range value.Values {
							if isNumbered(v, decl.Tok == token.CONST) {
								found[rel+" "+value.Names[min(i, len(value.Names)-1)].Name] = true
							}
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isNumbered says whether code holds a duration, or, as a constant, a large number.
func isNumbered(node ast.Node, isConstant bool) (numbered bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.MUL && (isUnit(n.X) || isUnit(n.Y)) {
				numbered = numbered || n.X != nil && (literal(n.X) > 0 || literal(n.Y) > 0)
			}
		case *ast.SelectorExpr:
			numbered = numbered || isConstant && isUnit(n)
		}
		return true
	})
	if expr, ok := node.(ast.Expr); ok && isConstant {
		numbered = numbered || literal(expr) >= large
	}
	return numbered
}

func isUnit(expr ast.Expr) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := selector.X.(*ast.Ident)
	return ok && name.Name == "time" && slices.Contains([]string{"Microsecond", "Millisecond", "Second", "Minute", "Hour"}, selector.Sel.Name)
}

// literal is the value of a whole number that is written out, products and shifts included; -1 for anything else.
func literal(expr ast.Expr) int64 {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind == token.INT {
			n, _ := constant.Int64Val(constant.MakeFromLiteral(expr.Value, token.INT, 0))
			return n
		}
	case *ast.ParenExpr:
		return literal(expr.X)
	case *ast.BinaryExpr:
		x, y := literal(expr.X), literal(expr.Y)
		switch {
		case x < 0 || y < 0:
		case expr.Op == token.SHL && y < 63:
			return x << y
		case expr.Op == token.MUL:
			return x * y
		}
	}
	return -1
}
