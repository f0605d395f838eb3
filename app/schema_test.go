package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryCarriesItsPartOfTheSchema holds outbox/schema.sql equal to the outbox part of the contract. The library embeds a copy
// because go:embed reaches no file above its package.
func TestLibraryCarriesItsPartOfTheSchema(t *testing.T) {
	t.Parallel()
	const begin, end = "-- outbox: begin", "-- outbox: end"
	contract, err := os.ReadFile(filepath.Join(root, "schema.sql"))
	if err != nil {
		t.Fatalf("read the contract: %v", err)
	}
	var part strings.Builder
	inside, ended := false, false
	for line := range strings.Lines(string(contract)) {
		inside = inside || strings.HasPrefix(line, begin)
		if inside {
			part.WriteString(line)
		}
		if inside && strings.HasPrefix(line, end) {
			inside, ended = false, true
		}
	}
	if !ended {
		t.Fatalf("schema.sql has no line %q followed by a line %q", begin, end)
	}
	copied, err := os.ReadFile(filepath.Join(root, "outbox", "schema.sql"))
	if err != nil {
		t.Fatalf("read the copy: %v", err)
	}
	if string(copied) != part.String() {
		t.Error("outbox/schema.sql is not the outbox part of schema.sql: run make generate")
	}
}
