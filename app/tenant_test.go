package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/cli"
)

// scopedLines is a line of each command that acts for a tenant.
var scopedLines = map[string]string{
	"alerts list":                "",
	"audit":                      "",
	"backlog":                    "",
	"connections disconnect":     "nobody",
	"connections list":           "",
	"deliveries cancel":          "1 --reason x",
	"deliveries skip":            "1 --reason x",
	"destinations backfill":      "shop --from 2026-01-01T00:00:00Z",
	"destinations change":        "shop --concurrency 2",
	"destinations create":        "shop --url http://127.0.0.1:9/ --types a-*",
	"destinations delete":        "shop --yes",
	"destinations list":          "",
	"destinations pause":         "shop --reason x",
	"destinations resume":        "shop",
	"destinations rotate-secret": "shop",
	"destinations show":          "shop",
	"destinations test":          "shop",
	"lending borrow":             "m-1 c-1",
	"lending loans":              "",
	"lending refresh-shelf":      "",
	"lending renew":              "l-1",
	"lending reserve":            "m-1 t-1",
	"lending return":             "l-1",
	"link":                       "",
	"messages list":              "",
	"messages resend":            "m --reason x",
	"messages show":              "m",
	"pull":                       "till --once -- true",
	"replay":                     "--all --reason x",
	"rollback-check":             "--to readers.json",
	"send":                       "parcel-sent {}",
	"tail":                       "",
	"tokens create":              "",
	"tokens list":                "",
	"tokens revoke":              "nobody",
}

// TestEachCommandActsForTheTenantItIsGiven: --tenant goes with every request of a command, to a route that takes it, or the command has no such flag.
func TestEachCommandActsForTheTenantItIsGiven(t *testing.T) {
	t.Parallel()
	options := testOptions(t, t.TempDir())
	options.Config.Lending = true
	a := open(t, options)
	var mu sync.Mutex
	var wrong []string // what the requests of a command did not do for the tenant
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := &firstBytes{ResponseWriter: w}
		a.Handler().ServeHTTP(answer, r.WithContext(access.With(r.Context(), machine)))
		mu.Lock()
		defer mu.Unlock()
		requests++
		for _, refusal := range []string{"unknown-parameter", "parameter-unknown"} {
			if strings.Contains(string(answer.begin), refusal) {
				wrong = append(wrong, r.Method+" "+r.URL.String()+" was answered: "+string(answer.begin))
			}
		}
		if r.URL.Query().Get("tenant") != "branch" && !strings.Contains(string(body), `"tenant":"branch"`) {
			wrong = append(wrong, r.Method+" "+r.URL.String()+" did not name the tenant")
		}
	}))
	t.Cleanup(server.Close)
	readers := filepath.Join(t.TempDir(), "readers.json")
	if err := os.WriteFile(readers, []byte(`{"reads":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name, line string) (int, string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if name == "tail" { // it ends when it is told to
			go func() {
				for ctx.Err() == nil {
					mu.Lock()
					n := requests
					mu.Unlock()
					if n > 0 {
						cancel()
					}
					time.Sleep(time.Millisecond)
				}
			}()
		}
		var out bytes.Buffer
		args := append(strings.Fields(name), strings.Fields(strings.ReplaceAll(line, "readers.json", readers))...)
		code := cli.Run(ctx, cli.Deps{Version: "test", In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}, args)
		return code, out.String()
	}
	var seen []string
	var walk func(above string, commands []*urfave.Command)
	walk = func(above string, commands []*urfave.Command) {
		for _, command := range commands {
			name := strings.TrimSpace(above + " " + command.Name)
			if len(command.Subcommands) > 0 {
				walk(name, command.Subcommands)
				continue
			}
			if !slices.ContainsFunc(command.Flags, func(f urfave.Flag) bool { return slices.Contains(f.Names(), "tenant") }) {
				if code, out := run(name, "--tenant branch"); code != cli.ExitUsage || !strings.Contains(out, "acts for no tenant") {
					t.Errorf("posthorn %s --tenant branch exits with %d: %s", name, code, out)
				}
				continue
			}
			seen = append(seen, name)
			line, ok := scopedLines[name]
			if !ok {
				t.Errorf("posthorn %s has --tenant, and no line here", name)
				continue
			}
			mu.Lock()
			wrong, requests = nil, 0
			mu.Unlock()
			code, out := run(name, "--tenant branch --server "+server.URL+" "+line)
			mu.Lock()
			if requests == 0 || len(wrong) > 0 {
				t.Errorf("posthorn %s made %d requests (exit %d), of which: %s\n%s", name, requests, code, strings.Join(wrong, "; "), out)
			}
			mu.Unlock()
		}
	}
	walk("", cli.App(cli.Deps{Version: "test"}).Commands)
	if len(seen) != len(scopedLines) {
		t.Errorf("%d commands have --tenant, and %d lines are here", len(seen), len(scopedLines))
	}
}

// firstBytes keeps how an answer begins.
type firstBytes struct {
	http.ResponseWriter
	begin []byte
}

func (f *firstBytes) Write(p []byte) (int, error) {
	if len(f.begin) < 1000 {
		f.begin = append(f.begin, p...)
	}
	return f.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (f *firstBytes) Unwrap() http.ResponseWriter { return f.ResponseWriter }
