package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/app/records"
)

func recordsCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "records",
		Usage: "Declare events, and look at what is declared",
		Description: `Records are Markdown files: the built-in ones are in the program, your own in the records folder of the data folder, where they
take the place of built-in ones of the same name.`,
		Subcommands: []*cli.Command{
			{Name: "new", Usage: "Write a new record", Subcommands: []*cli.Command{recordsNewEventCommand(deps)}},
			recordsListCommand(deps),
			recordsShowCommand(deps),
			recordsCheckCommand(deps),
		},
	}
}

func recordsNewEventCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "integration-event",
		Usage:     "Declare an event type, so that it may be sent",
		ArgsUsage: "TYPE",
		Description: `It writes records/integration-events/TYPE.md in the data folder, before the first start too. The file says what you can declare: a
JSON Schema, who may see which field, how long retries go on.`,
		Flags: []cli.Flag{
			dataDirFlag(), dbFlag(),
			&cli.StringFlag{Name: "trust", Usage: "the `TRUST` that readers may have in it: authoritative or advisory", Value: string(records.Authoritative)},
			&cli.IntSliceFlag{Name: "schema-version", Usage: "the schema `VERSIONS` that it has", Value: cli.NewIntSlice(1)},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			file, err := records.NewIntegrationEvent(deps.dataDir(c), given[0], records.Trust(c.String("trust")), c.IntSlice("schema-version"))
			switch {
			case errors.Is(err, records.ErrExists):
				return &Failure{Code: ExitFailed, Sentence: err.Error(), Advice: "edit the file, or choose another type"}
			case err != nil:
				return &Failure{Code: ExitFailed, Sentence: err.Error()}
			}
			reloaded, err := deps.reload(c.Context, deps.dataDir(c))
			if err != nil {
				return &Failure{Code: ExitFailed, Sentence: file + " is written, but the running process has not read it", Cause: err,
					Advice: "mend what it says, then restart it"}
			}
			out := deps.terminal(c)
			// Opening the database brings in what is declared, so that a program beside can stage before anybody serves.
			brought := false
			if db := deps.place(c).db; db != "" && !reloaded {
				if posthorn, err := deps.reach(c.Context, deps.dataDir(c), db, ""); err == nil {
					brought = posthorn.Close() == nil
				}
			}
			if out.json {
				return out.encode(map[string]any{"type": given[0], "file": file, "reloaded": reloaded})
			}
			out.printf("%s  %s  %s\n", out.paint.green("declared"), clean(given[0]), clean(file))
			if reloaded {
				out.printf("The running process has read it.\n")
			} else if deps.place(c).db != "" && !brought {
				out.printf("It can be staged from the next start of posthorn serve on.\n")
			}
			return nil
		},
	}
}

// reload has the process on a data folder read the records again, if one runs.
func (d Deps) reload(ctx context.Context, dataDir string) (bool, error) {
	socket := d.Socket(dataDir)
	if !answers(ctx, socket) {
		return false, nil
	}
	posthorn := client.Unix(socket)
	defer posthorn.Close()
	err := posthorn.Do(ctx, http.MethodPost, "/v1/records/reload", nil, nil)
	if problem := new(client.Problem); errors.As(err, &problem) && (problem.Status == http.StatusNotFound || problem.Status == http.StatusMethodNotAllowed) {
		return false, nil // another version, which sees the file for itself
	}
	return err == nil, err
}

// row is a record in a list.
type row struct {
	Kind   records.Kind   `json:"kind"`
	ID     string         `json:"id"`
	Title  string         `json:"title"`
	Origin records.Origin `json:"origin"`
	File   string         `json:"file"`
}

// kindNames lists the kinds of record, for people.
func kindNames() string {
	var names []string
	for _, kind := range records.Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

func recordsListCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "list",
		Usage:       "List the records in effect",
		ArgsUsage:   "[KIND]",
		Description: "The kinds are " + kindNames() + ".",
		Flags:       []cli.Flag{dataDirFlag(), dbFlag(), jsonFlag()},
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 0, 1)
			if err != nil {
				return err
			}
			if len(given) == 1 && !slices.Contains(records.Kinds(), records.Kind(given[0])) {
				return misuse("the kinds are "+kindNames(), "there is no kind of record %q", given[0])
			}
			set, err := loadRecords(deps.dataDir(c))
			if err != nil {
				return err
			}
			rows := []row{}
			for _, record := range set.All() {
				about := record.About()
				if len(given) == 0 || string(about.Kind) == given[0] {
					rows = append(rows, row{about.Kind, about.ID, about.Title, about.Origin, about.File})
				}
			}
			out := deps.terminal(c)
			if out.json {
				return out.encode(map[string]any{"records": rows})
			}
			table := out.table("RECORD", "ORIGIN", "TITLE")
			for _, row := range rows {
				table.row(string(row.Kind)+"/"+row.ID, string(row.Origin), row.Title)
			}
			return table.end()
		},
	}
}

// loadRecords reads the built-in records and those of a data folder, which need not exist.
func loadRecords(dataDir string) (*records.Set, error) {
	set, err := records.Load(os.DirFS(records.OverlayDir(dataDir)))
	return set, recordProblems(err)
}

// recordProblems prints as one line each, under a sentence that counts them.
func recordProblems(err error) error {
	var problems records.Problems
	if !errors.As(err, &problems) {
		return err
	}
	return &Failure{Code: ExitFailed, Sentence: fmt.Sprintf("the records have %s\n%s", plural(len(problems), "problem"), problems)}
}

func recordsCheckCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "Find records that are wrong, and references to records that do not exist",
		Flags: []cli.Flag{dataDirFlag(), dbFlag(), jsonFlag()},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			set, err := loadRecords(deps.dataDir(c))
			if err != nil {
				return err
			}
			if err := recordProblems(set.Check()); err != nil {
				return err
			}
			out := deps.terminal(c)
			if out.json {
				return out.encode(map[string]any{"records": len(set.All()), "problems": []string{}})
			}
			out.printf("%d records, no problems\n", len(set.All()))
			return nil
		},
	}
}
