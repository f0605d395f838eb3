package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlagsGoBeforeTheEnvironment runs every combination of what names a data folder and a database, on the command that serves and on one that
// opens the folder itself.
func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	at := func(name string) string { return filepath.Join(here, name) }
	opened := errors.New("opened")
	for _, c := range []struct {
		flags, env    string // d: a data folder, b: a database, u: a server
		wantDir, want string
		code          int
	}{
		{"", "", "", "", 0},
		{"", "d", "env", "", 0},
		{"", "b", "env.db.posthorn", "env.db", 0},
		{"", "d b", "env", "env.db", 0},
		{"d", "", "flag", "", 0},
		{"d", "d", "flag", "", 0},
		{"d", "b", "flag", "", 0},
		{"d", "d b", "flag", "", 0},
		{"b", "", "flag.db.posthorn", "flag.db", 0},
		{"b", "d", "flag.db.posthorn", "flag.db", 0},
		{"b", "b", "flag.db.posthorn", "flag.db", 0},
		{"b", "d b", "flag.db.posthorn", "flag.db", 0},
		{"d b", "", "flag", "flag.db", 0},
		{"d b", "d", "flag", "flag.db", 0},
		{"d b", "b", "flag", "flag.db", 0},
		{"d b", "d b", "flag", "flag.db", 0},
		{"d", "u", "flag", "", 0},
		{"b", "u", "flag.db.posthorn", "flag.db", 0},
		{"u", "d b", "server", "", 0},
		{"", "u d", "server", "", 0},
		{"u d", "", "", "", ExitUsage},
		{"u b", "", "", "", ExitUsage},
	} {
		env := map[string]string{}
		for word := range strings.FieldsSeq(c.env) {
			switch word {
			case "d":
				env["POSTHORN_DATA_DIR"] = at("env")
			case "b":
				env["POSTHORN_DB"] = at("env.db")
			case "u":
				env["POSTHORN_URL"] = "http://127.0.0.1:1"
			}
		}
		var flags []string
		for word := range strings.FieldsSeq(c.flags) {
			flags = append(flags, map[string][]string{"d": {"--data-dir", at("flag")}, "b": {"--db", at("flag.db")}, "u": {"--server", "http://127.0.0.1:1"}}[word]...)
		}
		wantDir, want := c.wantDir, c.want
		if wantDir != "" && wantDir != "server" {
			wantDir = at(wantDir)
		}
		if want != "" {
			want = at(want)
		}
		var errs bytes.Buffer
		gotDir, got := "none", ""
		deps := Deps{Out: io.Discard, Err: &errs, Getenv: func(name string) string { return env[name] },
			Serve: func(_ context.Context, flags ServeFlags) error {
				gotDir, got = flags.DataDir, flags.DB
				return nil
			},
			OpenLocal: func(_ context.Context, dataDir, db, _ string) (Local, error) {
				gotDir, got = dataDir, db
				return nil, opened
			}}
		if !strings.Contains(c.flags+c.env, "u") {
			if code := Run(t.Context(), deps, append([]string{"serve"}, flags...)); code != 0 || gotDir != wantDir || got != want {
				t.Errorf("serve, flags %q, environment %q: exit %d, %s and %q; want %s and %q", c.flags, c.env, code, gotDir, got, wantDir, want)
			}
		}
		if wantDir == "" {
			wantDir = DefaultDataDir
		}
		gotDir, got = "none", ""
		errs.Reset()
		code := Run(t.Context(), deps, append([]string{"tokens", "create"}, flags...))
		switch {
		case c.code != 0:
			if code != c.code || !strings.Contains(errs.String(), "at once") {
				t.Errorf("flags %q, environment %q: exit %d: %s", c.flags, c.env, code, &errs)
			}
		case wantDir == "server":
			if gotDir != "none" || !strings.Contains(errs.String(), "reach Posthorn at http://127.0.0.1:1") {
				t.Errorf("flags %q, environment %q: %s was opened: %s", c.flags, c.env, gotDir, &errs)
			}
		case gotDir != wantDir || got != want:
			t.Errorf("flags %q, environment %q: %s and %q; want %s and %q", c.flags, c.env, gotDir, got, wantDir, want)
		}
	}
}
