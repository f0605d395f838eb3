package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestArrange(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, line, want string }{
		{"nothing", "", ""},
		{"already forward", "send --id=7 order-placed {}", "send --id=7 order-placed {}"},
		{"after the arguments", "send order-placed {} --id 7 --json", "send --id=7 --json order-placed {}"},
		{"between the arguments", "send order-placed --id=7 {}", "send --id=7 order-placed {}"},
		{"before the command", "--data-dir D tokens create --role admin", "tokens create --data-dir=D --role=admin"},
		{"between commands", "tokens --json create", "tokens create --json"},
		{"a value that is a command's name", "--data-dir send messages list", "messages list --data-dir=send"},
		{"a value that looks like a flag", "send t --key --json", "send --key=--json t"},
		{"one dash", "send t -id 7", "send -id=7 t"},
		{"an alias of one letter", "destinations delete n -y", "destinations delete -y n"},
		{"a switch with a value", "send t --json=false", "send --json=false t"},
		{"the program's own flag", "--version", "--version"},
		{"help goes to the last command", "messages --help list", "messages list --help"},
		{"an unknown flag goes to the last command", "messages list --nope", "messages list --nope"},
		{"the standard input", "send t -", "send t -"},
		{"terminated", "send --json -- t --id", "send --json -- t --id"},
		{"terminated without need", "send t -- {}", "send t {}"},
		{"a terminator as an argument", "send -- t --", "send -- t --"},
		{"three levels", "records new integration-event order-placed --trust advisory --data-dir D",
			"records new integration-event --trust=advisory --data-dir=D order-placed"},
		{"a command's name as an argument", "send list", "send list"},
		{"a destination's own address", "destinations create n --url http://h/ --types a,b", "destinations create --url=http://h/ --types=a,b n"},
		{"completion is left alone", "messages --id li --generate-bash-completion", "messages --id li --generate-bash-completion"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := arrange(App(Deps{}), append([]string{"posthorn"}, strings.Fields(test.line)...))
			if err != nil {
				t.Fatal(err)
			}
			if want := append([]string{"posthorn"}, strings.Fields(test.want)...); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestArrangeMissesAValue(t *testing.T) {
	t.Parallel()
	_, err := arrange(App(Deps{}), []string{"posthorn", "send", "order-placed", "--id"})
	failure := new(Failure)
	if !errors.As(err, &failure) || failure.Code != ExitUsage || !strings.Contains(failure.Sentence, "--id") {
		t.Errorf("got %v, want a usage error that names the flag", err)
	}
}

// TestFlagsMeanOneThing holds what arrange needs: whether a flag takes a value must be known before its command is.
func TestFlagsMeanOneThing(t *testing.T) {
	t.Parallel()
	takes := map[string]bool{}
	var walk func(path string, flags []cli.Flag, commands []*cli.Command)
	walk = func(path string, flags []cli.Flag, commands []*cli.Command) {
		seen := map[string]bool{}
		for _, flag := range flags {
			for _, name := range flag.Names() {
				value := flag.(cli.DocGenerationFlag).TakesValue()
				if before, ok := takes[name]; ok && before != value {
					t.Errorf("%s: --%s takes a value in one command and none in another", path, name)
				}
				if seen[name] {
					t.Errorf("%s has --%s twice", path, name)
				}
				takes[name], seen[name] = value, true
			}
		}
		for _, command := range commands {
			if command.Usage == "" {
				t.Errorf("%s %s says nothing of itself", path, command.Name)
			}
			walk(path+" "+command.Name, command.Flags, command.Subcommands)
		}
	}
	app := App(Deps{})
	walk("posthorn", app.Flags, app.Commands)
}

// FuzzArrange checks that arranging loses no word and is done after one time.
func FuzzArrange(f *testing.F) {
	for _, line := range []string{"", "send t {} --id 7", "--data-dir D tokens create", "send -- -x", "a -- --", "--id=", "messages list --limit", "-", "---", "send --json=x -y"} {
		f.Add(line)
	}
	app := App(Deps{})
	f.Fuzz(func(t *testing.T, line string) {
		args := append([]string{"posthorn"}, strings.Split(line, " ")...)
		once, err := arrange(app, args)
		if err != nil {
			return
		}
		twice, err := arrange(app, once)
		if err != nil || !slices.Equal(once, twice) {
			t.Fatalf("%q arranged: %q, then %q, %v", args, once, twice, err)
		}
		if before, after := letters(args), letters(once); before != after {
			t.Fatalf("%q became %q", args, once)
		}
	})
}

// letters are the bytes of a line in order of value, without what arranging may add or take away.
func letters(args []string) string {
	all := []byte(strings.NewReplacer("=", "").Replace(strings.Join(slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--" }), "")))
	slices.Sort(all)
	return string(all)
}
