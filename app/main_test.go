package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// binaryFolder holds the program that the black-box tests run.
var binaryFolder string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "posthorn-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaryFolder = folder
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}))
}

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaryFolder, "posthorn")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "..")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build posthorn: %w\n%s", err, output)
	}
	return path, nil
})

// binary builds the program, once.
func binary(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// schema is the file that main embeds.
func schema(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
