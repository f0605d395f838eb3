package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func destinationsChangeCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "change",
		Usage:     "Change a destination; what is not named stays",
		ArgsUsage: "NAME",
		Description: `Where and how it delivers changes for what is pending too; --types for what is staged from then on, and
posthorn destinations backfill gives it the past. A concurrency, rate or timeout of 0 follows the setting again.`,
		Flags: clientFlags(bounding("what it has", "what it has",
			&cli.StringFlag{Name: "url", Usage: "a webhook's `URL`"},
			&cli.PathFlag{Name: "file", Aliases: []string{"path"}, Usage: "the `FILE` that gets a JSON line for each message"},
			&cli.StringSliceFlag{Name: "types", Usage: "the event types it gets, as `PATTERNS`"},
		)...),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			body := map[string]any{}
			bounds(c, body)
			for flag, field := range map[string]string{"url": "url", "file": "path"} {
				if c.IsSet(flag) {
					body[field] = c.String(flag)
				}
			}
			if types := c.StringSlice("types"); len(types) > 0 {
				body["types"] = types
			}
			if len(body) == 0 {
				return misuse("posthorn destinations change "+given[0]+" --concurrency 4", "nothing to change is named")
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				return deps.exchange(ctx, c, posthorn, http.MethodPatch, scoped(c, destinationPath(given[0])), body, showDestination)
			})
		},
	}
}

// bounding adds the flags of a destination's bounds, with what holds where they are not given.
func bounding(setting, order string, flags ...cli.Flag) []cli.Flag {
	return append(flags,
		&cli.IntFlag{Name: "concurrency", Usage: "at most this `NUMBER` of deliveries at once", DefaultText: setting},
		&cli.Float64Flag{Name: "rate", Usage: "at most this `NUMBER` of attempts a second", DefaultText: setting},
		&cli.DurationFlag{Name: "timeout", Usage: "how `LONG` one delivery may take", DefaultText: setting},
		&cli.StringFlag{Name: "order", Usage: "`WHAT` a dead letter does to the later messages of its ordering key: block them, or skip it", DefaultText: order},
	)
}

// bounds puts the given ones of them into a body.
func bounds(c *cli.Context, body map[string]any) {
	if c.IsSet("concurrency") {
		body["concurrency"] = c.Int("concurrency")
	}
	if c.IsSet("rate") {
		body["rate"] = c.Float64("rate")
	}
	if c.IsSet("timeout") {
		body["timeout"] = c.Duration("timeout").String()
		if c.Duration("timeout") == 0 {
			body["timeout"] = ""
		}
	}
	if c.IsSet("order") {
		body["order"] = c.String("order")
	}
}

func destinationsRotateCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "rotate-secret",
		Usage:       "Give a webhook a new signing secret",
		ArgsUsage:   "NAME",
		Description: "Deliveries are signed by the old one too for a while, so that the receiver can change over when it likes.",
		Flags:       clientFlags(&cli.DurationFlag{Name: "overlap", Usage: "how `LONG` the old secret signs beside the new one", DefaultText: "a setting"}),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				var body any
				if c.IsSet("overlap") {
					body = map[string]string{"overlap": c.Duration("overlap").String()}
				}
				return request{http.MethodPost, scoped(c, destinationPath(given[0])+"/rotate-secret"), body, showSecret("rotated")}, nil
			})
		},
	}
}

// trial is how a destination took a message made for trying it out.
type trial struct {
	Destination string   `json:"destination"`
	Delivered   bool     `json:"delivered"`
	Class       string   `json:"failure_class"`
	Error       string   `json:"error"`
	Excerpt     string   `json:"excerpt"`
	Duration    *float64 `json:"duration_seconds"`
}

func destinationsTestCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "Send a destination a message made for trying it out",
		ArgsUsage: "NAME",
		Description: `Signed as always, past the queue, a pause and an open breaker. It is not stored and not retried. It exits with 1 when the
destination does not take it.`,
		Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodPost, scoped(c, destinationPath(given[0])+"/test"), nil, &answer); err != nil {
					return err
				}
				return showTrial(deps.terminal(c), answer)
			})
		},
	}
}

func showTrial(out *terminal, answer json.RawMessage) error {
	var made trial
	if err := json.Unmarshal(answer, &made); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if out.json {
		if err := out.value(answer); err != nil {
			return err
		}
	} else if made.Delivered {
		out.printf("%s  %s  in %s\n", out.paint.green("delivered"), clean(made.Destination), seconds(made.Duration))
	}
	if made.Delivered {
		return nil
	}
	failure := &Failure{Code: ExitFailed, Sentence: fmt.Sprintf("%s did not take it (%s): %s", made.Destination, made.Class, made.Error)}
	if made.Excerpt != "" {
		failure.Advice = "it answered: " + made.Excerpt
	}
	return failure
}
