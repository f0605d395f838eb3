package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "say `WHY`; the audit keeps it"}
}

// reasonOf reads the reason of a change, which has to have one.
func reasonOf(c *cli.Context) (string, error) {
	reason := c.String("reason")
	if reason == "" {
		return "", misuse("add --reason 'the receiver was mended'", "say why with --reason")
	}
	return reason, nil
}

// replayFilters are the flags that name dead letters, and how the API calls them.
var replayFilters = []struct{ flag, field string }{
	{"handler", "handler"}, {"type", "type"}, {"class", "class"}, {"text", "q"},
	{"from", "from"}, {"to", "to"}, {"failed-from", "failed_from"}, {"failed-to", "failed_to"},
}

// replayed is what a bulk replay did, as the API says it.
type replayed struct {
	DryRun   bool         `json:"dry_run"`
	Matched  int64        `json:"matched"`
	Replayed int64        `json:"replayed"`
	Handlers []handlerSum `json:"handlers"`
	Next     *string      `json:"next"`
}

type handlerSum struct {
	Handler string `json:"handler"`
	Class   string `json:"class"`
	Count   int64  `json:"count"`
}

func replayCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "Return dead letters to pending",
		ArgsUsage: "[DELIVERY…]",
		Description: `Either by the numbers of deliveries, which ` + "`posthorn messages show ID`" + ` prints, or by filters. --dry-run says how many the filters
meet, by handler and class, and changes nothing. A message keeps its id and its bytes, so a receiver that suppresses repeats
recognises it. The audit keeps who replayed what, when, why, and the failure that it answers.

    posthorn replay 1042 --reason 'the receiver was mended'
    posthorn replay --handler shop --class rejected --dry-run
    posthorn replay --handler shop --class rejected --reason 'the receiver was mended'

A replay that is cut short has replayed what it had said; the same command does the rest.`,
		Flags: clientFlags(
			reasonFlag(),
			&cli.StringFlag{Name: "handler", Usage: "only those for this `HANDLER`"},
			&cli.StringFlag{Name: "type", Usage: "only those of this `TYPE`; a pattern, such as 'order-*', is quoted for the shell"},
			&cli.StringFlag{Name: "class", Usage: "only those of this failure `CLASS`: rejected, failed, gone, expired, cancelled, skipped …"},
			&cli.StringFlag{Name: "text", Aliases: []string{"q"}, Usage: "only those whose message id or error contains this `TEXT`"},
			&cli.StringFlag{Name: "from", Usage: "only messages that occurred at this `TIME` or later: RFC 3339, or a time ago, like 2h"},
			&cli.StringFlag{Name: "to", Usage: "only messages that occurred before this `TIME`"},
			&cli.StringFlag{Name: "failed-from", Usage: "only those given up at this `TIME` or later"},
			&cli.StringFlag{Name: "failed-to", Usage: "only those given up before this `TIME`"},
			&cli.BoolFlag{Name: "all", Usage: "every dead letter", DisableDefaultText: true},
			&cli.BoolFlag{Name: "dry-run", Usage: "count, and change nothing", DisableDefaultText: true},
		),
		Action: func(c *cli.Context) error {
			filter, err := replayFilter(c, deps.Now())
			if err != nil {
				return err
			}
			ids := c.Args().Slice()
			switch {
			case len(ids) > 0 && (len(filter) > 0 || c.Bool("all") || c.Bool("dry-run")):
				return misuse(c.Command.UsageText, "name deliveries or filters, not both")
			case len(ids) == 0 && len(filter) == 0 && !c.Bool("all"):
				return misuse(c.Command.UsageText, "name deliveries, filters, or --all")
			}
			reason := ""
			if !c.Bool("dry-run") {
				if reason, err = reasonOf(c); err != nil {
					return err
				}
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				if len(ids) > 0 {
					return changeDeliveries(ctx, deps, c, posthorn, "replay", ids, reason)
				}
				return replayAll(ctx, deps, c, posthorn, filter, reason)
			})
		},
	}
}

func replayFilter(c *cli.Context, now time.Time) (map[string]any, error) {
	filter := map[string]any{}
	for i, f := range replayFilters {
		value := c.String(f.flag)
		if value == "" {
			continue
		}
		filter[f.field] = value
		if i >= 4 { // the times
			at, err := past(value, now)
			if err != nil {
				return nil, err
			}
			filter[f.field] = at.Format(time.RFC3339Nano)
		}
	}
	return filter, nil
}

// replayAll sends the same request until there is no more to do, and says how far it is.
func replayAll(ctx context.Context, deps Deps, c *cli.Context, posthorn *client.Client, filter map[string]any, reason string) error {
	body := map[string]any{"filter": filter, "dry_run": c.Bool("dry-run")}
	if reason != "" {
		body["reason"] = reason
	}
	progress := deps.progress()
	total := replayed{DryRun: c.Bool("dry-run"), Handlers: []handlerSum{}}
	for {
		var step replayed
		if err := posthorn.Do(ctx, http.MethodPost, scoped(c, "/v1/replays"), body, &step); err != nil {
			progress.end()
			return err
		}
		total.add(step)
		if step.Next == nil {
			break
		}
		progress.say("%d looked at, %d replayed", total.Matched, total.Replayed)
		body["cursor"] = *step.Next
	}
	progress.end()
	out := deps.terminal(c)
	if out.json {
		return out.encode(total)
	}
	return showReplayed(out, total)
}

func (r *replayed) add(step replayed) {
	r.Matched += step.Matched
	r.Replayed += step.Replayed
next:
	for _, sum := range step.Handlers {
		for i := range r.Handlers {
			if r.Handlers[i].Handler == sum.Handler && r.Handlers[i].Class == sum.Class {
				r.Handlers[i].Count += sum.Count
				continue next
			}
		}
		r.Handlers = append(r.Handlers, sum)
	}
}

func showReplayed(out *terminal, done replayed) error {
	if done.Matched == 0 {
		out.printf("no dead letters meet these filters\n")
		return nil
	}
	table := out.table("HANDLER", "CLASS", "DEAD LETTERS")
	for _, sum := range done.Handlers {
		table.row(sum.Handler, sum.Class, strconv.FormatInt(sum.Count, 10))
	}
	if err := table.end(); err != nil {
		return err
	}
	if done.DryRun {
		out.printf("\nwould replay %s; nothing was changed\n", plural(int(done.Matched), "dead letter"))
		return nil
	}
	out.printf("\n%s  %s\n", out.paint.green("replayed"), plural(int(done.Replayed), "dead letter"))
	if left := done.Matched - done.Replayed; left > 0 {
		out.printf("left alone, having changed meanwhile: %d\n", left)
	}
	return nil
}

// changeDeliveries makes one change to each of some deliveries. It stops at the first that is refused, so that what was done is plain.
func changeDeliveries(ctx context.Context, deps Deps, c *cli.Context, posthorn *client.Client, verb string, ids []string, reason string) error {
	done := map[string]string{"replay": "replayed", "cancel": "cancelled", "skip": "skipped"}[verb]
	for _, id := range ids {
		path := scoped(c, "/v1/deliveries/"+url.PathEscape(id)+"/"+verb)
		err := deps.exchange(ctx, c, posthorn, http.MethodPost, path, map[string]string{"reason": reason}, func(out *terminal, answer json.RawMessage) error {
			var changed struct {
				ID               int64
				Message, Handler string
			}
			if err := json.Unmarshal(answer, &changed); err != nil {
				return fmt.Errorf("read answer: %w", err)
			}
			out.printf("%s  delivery %d  %s to %s\n", out.paint.green(done), changed.ID, clean(changed.Message), clean(changed.Handler))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
