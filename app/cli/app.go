package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

const description = `Posthorn gives an application on one machine the two things that its database cannot: after a commit, the outside
world hears of it whatever crashes, and open screens see it while it still matters.

Commands reach the running process through the unix socket in its data folder (--data-dir, POSTHORN_DATA_DIR, else
posthorn-data in the current folder). When none runs they open the data folder themselves. --server (or --url,
POSTHORN_URL) and POSTHORN_TOKEN reach a Posthorn elsewhere. Flags may stand anywhere; what follows -- is never a flag.

Exit codes: 0 done · 1 refused or not reached · 2 wrong command line · 70 the storage failed · 73 another process holds
the data folder · 74 the database has a newer schema · 75 the database is damaged or has lost commits · 130 interrupted.`

// Run runs one command line, without the program's name, and returns the exit code. It never ends the process. The context's end stops
// serve, demo and sink in good order.
func Run(ctx context.Context, deps Deps, args []string) int {
	deps = deps.withDefaults()
	paint := paletteFor(deps.Err, deps.Getenv)
	app := App(deps)
	arranged, err := arrange(app, append([]string{app.Name}, args...))
	if err == nil {
		err = app.RunContext(ctx, arranged)
	}
	if err != nil {
		report(deps.Err, err, paint)
	}
	return exitCode(err)
}

// App is the tree of commands. Run is the way to run it, since it also arranges the flags and maps the errors.
func App(deps Deps) *cli.App {
	deps = deps.withDefaults()
	app := &cli.App{
		Name:                 "posthorn",
		Usage:                "durable delivery and live updates for applications on one machine",
		Description:          description,
		Version:              deps.Version,
		HideVersion:          true,
		UsageText:            "posthorn COMMAND",
		EnableBashCompletion: true,
		Suggest:              true,
		Reader:               deps.In,
		Writer:               deps.Out,
		ErrWriter:            deps.Err,
		ExitErrHandler:       func(*cli.Context, error) {},
		Flags:                []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				fmt.Fprintln(deps.Out, "posthorn", deps.Version)
				return nil
			}
			return group(c)
		},
		Commands: []*cli.Command{
			demoCommand(deps),
			serveCommand(deps),
			installCommand(deps),
			uninstallCommand(deps),
			schemaCommand(deps),
			sendCommand(deps),
			messagesCommand(deps),
			replayCommand(deps),
			deliveriesCommand(deps),
			destinationsCommand(deps),
			backlogCommand(deps),
			auditCommand(deps),
			alertsCommand(deps),
			pullCommand(deps),
			tailCommand(deps),
			linkCommand(deps),
			recordsCommand(deps),
			settingsCommand(deps),
			conformanceCommand(deps),
			tokensCommand(deps),
			connectionsCommand(deps),
			sinkCommand(deps),
			completionCommand(deps),
			lendingCommand(deps),
			benchCommand(deps),
			benchLiveServer(deps),
			measureCommand(deps),
			rollbackCheckCommand(deps),
			versionCommand(deps),
		},
	}
	app.OnUsageError = usageError
	finish(app.Commands, "posthorn")
	return app
}

// finish gives every command what all have in common.
func finish(commands []*cli.Command, above string) {
	for _, command := range commands {
		name := above + " " + command.Name
		command.OnUsageError = usageError
		if len(command.Subcommands) > 0 {
			command.Action = group
			command.UsageText = name + " COMMAND"
			finish(command.Subcommands, name)
			continue
		}
		command.UsageText = strings.TrimSpace(name + " " + command.ArgsUsage)
		if len(command.Flags) > 0 && !strings.Contains(command.ArgsUsage, "[flags]") {
			command.UsageText += " [flags]"
		}
		// Without this, `send help` would not send a message of the type "help".
		command.HideHelpCommand = true
	}
}

// group answers a command that only has commands below it.
func group(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowSubcommandHelp(c)
	}
	commands := c.App.Commands
	if len(c.Command.Subcommands) > 0 {
		commands = c.Command.Subcommands
	}
	name := c.Command.HelpName
	hint := strings.TrimSpace(cli.SuggestCommand(commands, c.Args().First()) + " " + name + " --help lists the commands")
	return misuse(hint, "%s has no command %q", name, c.Args().First())
}

func usageError(c *cli.Context, err error, _ bool) error {
	if strings.HasSuffix(err.Error(), "not defined: -tenant") {
		return misuse("leave --tenant out", "%s acts for no tenant: what it is about is the same for all of them", c.Command.HelpName)
	}
	return misuse(c.Command.HelpName+" --help lists the flags", "%v", err)
}

// arguments checks how many arguments a command got, and returns them.
func arguments(c *cli.Context, least, most int) ([]string, error) {
	given := c.Args().Slice()
	switch {
	case len(given) < least:
		return nil, misuse(c.Command.UsageText, "an argument is missing")
	case len(given) > most:
		return nil, misuse(c.Command.UsageText, "the argument %q is one too many", given[most])
	}
	return given, nil
}
