package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

// maxReaders bounds the file that another program printed.
const maxReaders = 4 << 20

func rollbackCheckCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "rollback-check",
		Usage: "List what is not dispatched and an older program could not read",
		Description: `Before going back to an older program, have it print what it reads, and compare:

    posthorn-old version --readers --json >readers.json
    posthorn rollback-check --to readers.json

It exits with 0 when the older program reads everything that is not dispatched, and with 1 when it does not. What to do then says
posthorn records show runbooks/rollback.`,
		Flags: clientFlags(&cli.PathFlag{Name: "to", Usage: "what the older program reads, a `FILE` of its version --readers --json"}),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			readers, err := readReaders(c.Path("to"))
			if err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodPost, scoped(c, "/v1/rollback-check"), readers, &answer); err != nil {
					return err
				}
				return showRollback(deps.terminal(c), answer)
			})
		},
	}
}

func readReaders(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, misuse("posthorn-old version --readers --json >readers.json", "name what the older program reads with --to")
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxReaders {
		return nil, &Failure{Code: ExitFailed, Sentence: path + " is no list of what a program reads: it is too long"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &Failure{Code: ExitFailed, Sentence: "the readers cannot be read", Cause: err}
	}
	if !json.Valid(text) {
		return nil, &Failure{Code: ExitFailed, Sentence: path + " is not JSON", Advice: "the older program prints it with version --readers --json"}
	}
	return text, nil
}

func showRollback(out *terminal, answer json.RawMessage) error {
	var found struct {
		Readable bool
		Counts   []struct {
			Kind, Type, State string
			SchemaVersion     int `json:"schema_version"`
			Deliveries        int64
		}
		Deliveries []struct {
			Message, Type, Handler, State, Tenant string
			SchemaVersion                         int `json:"schema_version"`
		}
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	left := error(nil)
	if !found.Readable {
		left = &Failure{Code: ExitFailed, Sentence: "the older program could not read all that is not dispatched", Advice: "posthorn records show runbooks/rollback"}
	}
	if out.json {
		return errors.Join(out.value(answer), left)
	}
	if found.Readable {
		out.printf("the older program reads everything that is not dispatched\n")
		return nil
	}
	table := out.table("KIND", "TYPE", "VERSION", "STATE", "DELIVERIES")
	for _, c := range found.Counts {
		table.row(c.Kind, c.Type, strconv.Itoa(c.SchemaVersion), out.paint.state(c.State), strconv.FormatInt(c.Deliveries, 10))
	}
	if err := table.end(); err != nil {
		return err
	}
	out.printf("\n")
	table = out.table("MESSAGE", "TYPE", "VERSION", "HANDLER", "STATE", "TENANT")
	for _, d := range found.Deliveries {
		table.row(d.Message, d.Type, strconv.Itoa(d.SchemaVersion), d.Handler, out.paint.state(d.State), d.Tenant)
	}
	return errors.Join(table.end(), left)
}
