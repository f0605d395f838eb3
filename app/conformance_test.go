package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/mutants"
	"github.com/posthorn/posthorn/app/records"
)

const provisions = 56

var (
	conformanceRow = regexp.MustCompile(`(?m)^\| P(\d+) \| (met|partly|open) \| (.+) \| (.*) ?\|$`)
	namedTest      = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")
)

// TestConformance holds the table complete and in order, and the tests that it names to exist: a provision that is met is shown by one.
func TestConformance(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("records/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := conformanceRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) != provisions {
		t.Fatalf("%d rows, want %d", len(rows), provisions)
	}
	for i, row := range rows {
		if row[1] != fmt.Sprint(i+1) {
			t.Errorf("row %d is of P%s", i+1, row[1])
		}
		tests := namedTest.FindAllStringSubmatch(row[4], -1)
		if row[2] == "met" && len(tests) == 0 {
			t.Errorf("P%s is met, but nothing shows it", row[1])
		}
		for _, test := range tests {
			if !declares(t, filepath.Join(root, test[1]), test[2]) {
				t.Errorf("P%s: there is no %s in %s", row[1], test[2], test[1])
			}
		}
	}
}

// declares reports whether a package has a test of that name.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}

// TestMutationsAreOfNamedTests: what a mutation has to fail is one of the tests that the table names for its provision.
func TestMutationsAreOfNamedTests(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, p := range records.Conformance() {
		shown[p.Provision] = p.Tests
	}
	for _, m := range mutants.Table {
		if !slices.Contains(shown[m.Provision], m.Test) {
			t.Errorf("%s: %s does not name %s", m.Name, m.Provision, m.Test)
		}
	}
}
