package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/records"
)

func recordsShowCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Print a record, with the records that it names and that name it",
		ArgsUsage: "KIND/ID",
		Description: `Where only one kind has such an id, the id alone does:

    posthorn records show recover-dead-letters`,
		Flags: []cli.Flag{dataDirFlag(), dbFlag(), jsonFlag()},
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			set, err := loadRecords(deps.dataDir(c))
			if err != nil {
				return err
			}
			ref, ok := set.Named(given[0])
			if !ok {
				return &Failure{Code: ExitFailed, Sentence: fmt.Sprintf("there is no record %q, or more than one", given[0]), Advice: "posthorn records list"}
			}
			record, _ := set.Get(ref)
			return deps.showRecord(c, set, record)
		},
	}
}

func (d Deps) showRecord(c *cli.Context, set *records.Set, record records.Record) error {
	about := record.About()
	names, namedBy := set.References(record), set.ReferencedBy(about.Ref())
	out := d.terminal(c)
	if out.json {
		front, err := about.FrontMatter()
		if err != nil {
			return fmt.Errorf("print record: %w", err)
		}
		return out.encode(map[string]any{"kind": about.Kind, "id": about.ID, "title": about.Title, "origin": about.Origin, "file": about.File,
			"front_matter": json.RawMessage(front), "body": about.Body, "references": names, "referenced_by": namedBy})
	}
	out.printf("%s\n", strings.TrimRight(clean(strings.ReplaceAll(about.Text, "\t", "    ")), "\n"))
	for _, side := range []struct {
		title    string
		mentions []records.Mention
	}{{"names", names}, {"named by", namedBy}} {
		if len(side.mentions) == 0 {
			continue
		}
		out.printf("\n%s\n", out.paint.dim(side.title))
		for _, m := range side.mentions {
			out.printf("  %-40s  %s\n", clean(string(m.Kind)+"/"+m.ID), clean(m.Title))
		}
	}
	return nil
}
