package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// build builds the program once, and returns the folder that it is in.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "posthorn-cli-")
	if err != nil {
		return "", err
	}
	command := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "posthorn"), "github.com/posthorn/posthorn")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return dir, errors.New(string(text))
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := build(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// TestScripts runs the real program as its users do.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("POSTHORN_DATA_DIR", "data")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "appears": appears, "grab": grab},
		// A socket's path has a bound, and the folder of a script is below this one.
		WorkdirRoot: short(t),
	})
}

func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// exits CODE COMMAND…: the command exits with exactly this code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	exit := new(exec.ExitError)
	switch {
	case err == nil && args[0] == "0":
	case errors.As(err, &exit) && strconv.Itoa(exit.ExitCode()) == args[0]:
	default:
		ts.Fatalf("%v exits with %v, want %s", args[1:], err, args[0])
	}
}

// appears FILE: waits until the file is there.
func appears(ts *testscript.TestScript, _ bool, args []string) {
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// grab NAME FILE PATTERN: waits until the file has the pattern, and sets NAME to its group. The file may be stdout.
func grab(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[2])
	for {
		var text string
		if args[1] == "stdout" {
			text = ts.ReadFile("stdout")
		} else if raw, err := os.ReadFile(ts.MkAbs(args[1])); err == nil {
			text = string(raw)
		}
		if found := pattern.FindStringSubmatch(text); found != nil {
			ts.Setenv(args[0], found[1])
			return
		}
		if args[1] == "stdout" {
			ts.Fatalf("no %s in %s", args[2], text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
