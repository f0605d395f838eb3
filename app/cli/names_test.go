package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestFlagsHaveTheNamesOfTheAPI: what a request calls a field, its command takes as a flag, whatever shorter name it has beside.
func TestFlagsHaveTheNamesOfTheAPI(t *testing.T) {
	t.Parallel()
	app := App(Deps{Version: "test"})
	for command, fields := range map[string]string{
		"send":                       "id ordering_key deliver_at schema_version content_type tenant",
		"messages list":              "state type handler from to q limit cursor tenant",
		"messages resend":            "reason handler",
		"replay":                     "handler type class q from to failed_from failed_to reason dry_run",
		"audit":                      "limit cursor tenant",
		"destinations create":        "kind url path types concurrency rate timeout order tenant",
		"destinations change":        "url path types concurrency rate timeout order",
		"destinations pause":         "reason",
		"destinations rotate-secret": "overlap",
		"destinations backfill":      "from to",
		"tokens create":              "role name tenant expires_at",
	} {
		commands, found := app.Commands, (*cli.Command)(nil)
		for _, name := range strings.Fields(command) {
			at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == name })
			if at < 0 {
				t.Fatalf("there is no command %s", command)
			}
			found = commands[at]
			commands = found.Subcommands
		}
		for _, field := range strings.Fields(fields) {
			flag := strings.ReplaceAll(field, "_", "-")
			if !slices.ContainsFunc(found.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) }) {
				t.Errorf("posthorn %s has no flag --%s", command, flag)
			}
		}
	}
}

// TestTheREADMENamesEveryCommand holds its table: a command's name begins a row's first column, or stands behind a comma in it.
func TestTheREADMENamesEveryCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, entry := range strings.Split(strings.TrimPrefix(cells[0], "| "), ", ") {
			name, _, _ := strings.Cut(strings.Trim(entry, "`"), " ")
			named[name] = true
		}
	}
	for _, command := range App(Deps{Version: "test"}).Commands {
		if !command.Hidden && !named[command.Name] {
			t.Errorf("the table of commands in README.md has no %s", command.Name)
		}
	}
}
