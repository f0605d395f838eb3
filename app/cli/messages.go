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

func messagesCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "messages",
		Usage:       "Look at messages",
		Subcommands: []*cli.Command{messagesListCommand(deps), messagesShowCommand(deps)},
	}
}

// summary is a message in a list.
type summary struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Tenant     string    `json:"tenant"`
	State      string    `json:"state"`
	OccurredAt time.Time `json:"occurred_at"`
	Deliveries []struct {
		Handler   string `json:"handler"`
		State     string `json:"state"`
		Attempt   int    `json:"attempt"`
		LastError string `json:"last_error"`
	} `json:"deliveries"`
}

// page is one page of a list of messages.
type page struct {
	Messages []summary `json:"messages"`
	Next     string    `json:"next"`
}

func messagesListCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List messages, the newest first",
		Flags: clientFlags(
			&cli.StringFlag{Name: "state", Usage: "only those in this `STATE`: pending, processing, dispatched, dead-letter"},
			&cli.StringFlag{Name: "type", Usage: "only those of this `TYPE`"},
			&cli.StringFlag{Name: "handler", Usage: "only those with a delivery for this `HANDLER`"},
			&cli.StringFlag{Name: "tenant", Usage: "only those of this `TENANT`"},
			&cli.StringFlag{Name: "since", Usage: "only those that occurred at this `TIME` or later: RFC 3339, or a time ago, like 2h"},
			&cli.StringFlag{Name: "until", Usage: "only those that occurred before this `TIME`"},
			&cli.StringFlag{Name: "text", Usage: "only those whose id or error contains this `TEXT`"},
			&cli.IntFlag{Name: "limit", Usage: "at most this `NUMBER`", Value: 50},
			&cli.StringFlag{Name: "after", Usage: "go on after this `CURSOR`, which the page before named"},
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			query, err := messagesQuery(c, deps.Now())
			if err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodGet, "/v1/messages?"+query.Encode(), nil, &answer); err != nil {
					return err
				}
				out := deps.terminal(c)
				if out.json {
					return out.value(answer)
				}
				var found page
				if err := json.Unmarshal(answer, &found); err != nil {
					return fmt.Errorf("read answer: %w", err)
				}
				return showMessages(out, found)
			})
		},
	}
}

// messagesQuery turns the flags into the filters of the API.
func messagesQuery(c *cli.Context, now time.Time) (url.Values, error) {
	query := url.Values{"limit": {strconv.Itoa(c.Int("limit"))}}
	for flag, filter := range map[string]string{
		"state": "state", "type": "type", "handler": "handler", "tenant": "tenant", "text": "text", "after": "after",
	} {
		if value := c.String(flag); value != "" {
			query.Set(filter, value)
		}
	}
	for _, flag := range []string{"since", "until"} {
		at, err := past(c.String(flag), now)
		if err != nil {
			return nil, err
		}
		if at != nil {
			query.Set(flag, at.Format(time.RFC3339Nano))
		}
	}
	return query, nil
}

// past reads a time: RFC 3339, or how long ago; "" is none.
func past(text string, now time.Time) (*time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		at := now.Add(-d.Abs()).UTC()
		return &at, nil
	}
	return moment(text, now)
}

func showMessages(out *terminal, found page) error {
	if len(found.Messages) == 0 {
		out.printf("no messages\n")
		return nil
	}
	table := out.table("ID", "TYPE", "STATE", "ATTEMPTS", "OCCURRED", "HANDLERS")
	for _, message := range found.Messages {
		attempts, handlers := 0, ""
		for i, delivery := range message.Deliveries {
			attempts = max(attempts, delivery.Attempt)
			if i > 0 {
				handlers += ", "
			}
			handlers += delivery.Handler
		}
		table.row(message.ID, message.Type, out.paint.state(message.State), strconv.Itoa(attempts), out.clock(message.OccurredAt), handlers)
	}
	if err := table.end(); err != nil {
		return err
	}
	if found.Next != "" {
		out.printf("\nmore: --after %s\n", clean(found.Next))
	}
	return nil
}
