package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func deliveriesCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "deliveries",
		Usage: "Give up deliveries",
		Description: "A delivery is one message for one handler; `posthorn messages show ID` prints the numbers of a message's. " +
			"A dead letter is returned by `posthorn replay`.",
		Subcommands: []*cli.Command{
			deliveriesActCommand(deps, "cancel", "Give up a pending delivery",
				`It becomes a dead letter of the class cancelled, which can be replayed, and no longer holds back the later messages of its ordering
key. While an attempt runs it is refused: the outcome is the target's to say.`),
			deliveriesActCommand(deps, "skip", "Pass over a dead letter that holds back its ordering key",
				`The next message of its key is delivered. The dead letter gets the class skipped; when it is replayed later, it stands outside the
order.`),
		},
	}
}

func deliveriesActCommand(deps Deps, verb, usage, description string) *cli.Command {
	return &cli.Command{
		Name:        verb,
		Usage:       usage,
		ArgsUsage:   "DELIVERY…",
		Description: description,
		Flags:       clientFlags(reasonFlag()),
		Action: func(c *cli.Context) error {
			ids, err := arguments(c, 1, 1000)
			if err != nil {
				return err
			}
			reason, err := reasonOf(c)
			if err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				return changeDeliveries(ctx, deps, c, posthorn, verb, ids, reason)
			})
		},
	}
}

func messagesResendCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "resend",
		Usage:     "Send a dispatched message again",
		ArgsUsage: "ID",
		Description: `Each handler that accepted it gets a new delivery, outside the order. The message keeps its id: a receiver that suppresses repeats
does nothing twice, and a handler inside Posthorn answers dispatched, suppressed.`,
		Flags: clientFlags(reasonFlag(), &cli.StringFlag{Name: "handler", Usage: "only to this `HANDLER`"}),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				reason, err := reasonOf(c)
				body := map[string]string{"reason": reason}
				if handler := c.String("handler"); handler != "" {
					body["handler"] = handler
				}
				return request{http.MethodPost, scoped(c, "/v1/messages/"+url.PathEscape(given[0])+"/resend"), body, showResent}, err
			})
		},
	}
}

func showResent(out *terminal, answer json.RawMessage) error {
	var resent struct {
		Message    string
		Deliveries []int64
	}
	if err := json.Unmarshal(answer, &resent); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.printf("%s  %s  as delivery", out.paint.green("sent again"), clean(resent.Message))
	for _, id := range resent.Deliveries {
		out.printf(" %d", id)
	}
	out.printf("\n")
	return nil
}
