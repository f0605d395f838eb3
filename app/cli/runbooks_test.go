package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/records"
)

// TestRunbooksNameCommandsThatExist takes each command line of each runbook apart: its command is there, and so is every flag.
func TestRunbooksNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	app := App(Deps{Version: "test"})
	seen := 0
	for _, runbook := range records.List[*records.Runbook](set) {
		for line := range strings.Lines(runbook.Body) {
			if !strings.HasPrefix(line, "    ") {
				continue
			}
			words := split(strings.TrimSpace(line))
			if len(words) == 0 || words[0] != "posthorn" && words[0] != "posthorn-old" {
				continue
			}
			seen++
			if err := find(app.Commands, words[1:]); err != "" {
				t.Errorf("%s: %q: %s", runbook.ID, strings.TrimSpace(line), err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// split takes a command line apart as a shell does, as far as runbooks use one.
func split(line string) []string {
	var words []string
	var word strings.Builder
	quoted := false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(r)
		}
	}
	return words
}

// find says what is wrong with a command line, or nothing.
func find(commands []*cli.Command, words []string) string {
	var command *cli.Command
	for len(words) > 0 && len(commands) > 0 {
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if at < 0 {
			return "there is no command " + words[0]
		}
		command, words = commands[at], words[1:]
		commands = command.Subcommands
	}
	if command == nil || len(commands) > 0 {
		return "it names no command"
	}
	for _, word := range words {
		if strings.HasPrefix(word, ">") {
			break
		}
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && !slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			return "there is no flag " + word
		}
	}
	return ""
}
