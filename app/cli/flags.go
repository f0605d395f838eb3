package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag asks urfave/cli for the words that may follow; such a line is left as it is.
const completionFlag = "--generate-bash-completion"

// level is the program or one of its commands, as a command line goes down to it.
type level struct {
	name     string
	flags    []cli.Flag
	commands []*cli.Command
	moved    []string // the flags that are its own
}

// arrange moves each flag of a command line to the command that owns it, before that command's arguments, so that flags may stand
// anywhere. args begins with the program's name. What follows "--" is never a flag. A flag that no command knows goes to the last
// one, which refuses it by name.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) < 2 || args[len(args)-1] == completionFlag {
		return args, nil
	}
	takesValue := arities(app.Flags, app.Commands)
	levels := []*level{{name: args[0], flags: app.Flags, commands: app.Commands}}
	var arguments []string
	type flagToken struct{ name, text string }
	var flags []flagToken
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		token := rest[0]
		if token == "--" {
			arguments = append(arguments, rest[1:]...)
			break
		}
		if !strings.HasPrefix(token, "-") || token == "-" {
			last := levels[len(levels)-1]
			if command := named(last.commands, token); command != nil && len(arguments) == 0 {
				levels = append(levels, &level{name: token, flags: command.Flags, commands: command.Subcommands})
			} else {
				arguments = append(arguments, token)
			}
			continue
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(token, "-"), "-"), "=")
		if takesValue[name] && !hasValue {
			if len(rest) == 1 {
				return nil, misuse("see posthorn "+path(levels)+" --help", "the flag %s needs a value", token)
			}
			token += "=" + rest[1]
			rest = rest[1:]
		}
		flags = append(flags, flagToken{name, token})
	}
	for _, flag := range flags {
		owner := owner(levels, flag.name)
		owner.moved = append(owner.moved, flag.text)
	}
	var arranged []string
	for _, level := range levels {
		arranged = append(append(arranged, level.name), level.moved...)
	}
	if slices.ContainsFunc(arguments, func(s string) bool { return strings.HasPrefix(s, "-") && s != "-" }) {
		arranged = append(arranged, "--")
	}
	return append(arranged, arguments...), nil
}

// owner is the deepest level that has a flag, or the last when none has it.
func owner(levels []*level, name string) *level {
	for _, level := range slices.Backward(levels) {
		if slices.ContainsFunc(level.flags, func(flag cli.Flag) bool { return slices.Contains(flag.Names(), name) }) {
			return level
		}
	}
	return levels[len(levels)-1]
}

func named(commands []*cli.Command, name string) *cli.Command {
	i := slices.IndexFunc(commands, func(command *cli.Command) bool { return command.HasName(name) })
	if i < 0 {
		return nil
	}
	return commands[i]
}

// path names the command of a line, without the program.
func path(levels []*level) string {
	var names []string
	for _, level := range levels[1:] {
		names = append(names, level.name)
	}
	return strings.Join(names, " ")
}

// arities says of every flag whether it takes a value. A name means one thing in the whole program: a line must be read before its
// command is known.
func arities(flags []cli.Flag, commands []*cli.Command) map[string]bool {
	takes := map[string]bool{}
	for _, flag := range flags {
		documented, ok := flag.(cli.DocGenerationFlag)
		for _, name := range flag.Names() {
			takes[name] = ok && documented.TakesValue()
		}
	}
	for _, command := range commands {
		for name, value := range arities(command.Flags, command.Subcommands) {
			takes[name] = takes[name] || value
		}
	}
	return takes
}
