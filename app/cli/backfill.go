package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

// backfill is how far a destination has been given its past.
type backfill struct {
	Destination string  `json:"destination"`
	State       string  `json:"state"`
	Added       int64   `json:"added"`
	Progress    float64 `json:"progress"`
}

// backfillPoll is how often the progress of a backfill is asked for.
const backfillPoll = 250 * time.Millisecond

func destinationsBackfillCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "backfill",
		Usage:     "Give a destination the kept messages of the past that its types match",
		ArgsUsage: "NAME",
		Description: `What it has a delivery of already it gets no second time; what no route wanted moves over to it. The destination is held until the last
is in, so that what has an ordering key comes in order. The work goes on when this command is stopped, and after a restart;
without a running process it waits for the next one.`,
		Flags: clientFlags(
			&cli.StringFlag{Name: "from", Usage: "only messages that occurred at this `TIME` or later: RFC 3339, or a time ago, like 2h"},
			&cli.StringFlag{Name: "to", Usage: "only messages that occurred before this `TIME`"},
			&cli.BoolFlag{Name: "no-wait", Usage: "return when it has begun", DisableDefaultText: true},
		),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			body := map[string]any{}
			for _, bound := range []string{"from", "to"} {
				at, err := past(c.String(bound), deps.Now())
				if err != nil {
					return err
				}
				if at != nil {
					body[bound] = at.Format(time.RFC3339Nano)
				}
			}
			path := scoped(c, destinationPath(given[0])+"/backfill")
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodPost, path, body, &answer); err != nil {
					return err
				}
				if !c.Bool("no-wait") {
					if err := follow(ctx, deps, posthorn, path, &answer); err != nil {
						return err
					}
				}
				out := deps.terminal(c)
				if out.json {
					return out.value(answer)
				}
				return showBackfill(out, answer)
			})
		},
	}
}

// follow asks how far a backfill is until it is finished.
func follow(ctx context.Context, deps Deps, posthorn *client.Client, path string, answer *json.RawMessage) error {
	progress := deps.progress()
	defer progress.end()
	for {
		var now backfill
		if err := posthorn.Do(ctx, http.MethodGet, path, nil, answer); err != nil {
			return err
		}
		if err := json.Unmarshal(*answer, &now); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if now.State != "running" {
			return nil
		}
		progress.say("%3.0f %%  %d deliveries added", now.Progress*100, now.Added)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(backfillPoll):
		}
	}
}

func showBackfill(out *terminal, answer json.RawMessage) error {
	var done backfill
	if err := json.Unmarshal(answer, &done); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if done.State == "running" {
		out.printf("%s  %s; it is held until its past is in\n", out.paint.green("begun"), clean(done.Destination))
		return nil
	}
	out.printf("%s  %s  %d deliveries added\n", out.paint.green("backfilled"), clean(done.Destination), done.Added)
	return nil
}
