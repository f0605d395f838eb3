package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func messagesCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "messages",
		Usage:       "Look at messages, and send them again",
		Subcommands: []*cli.Command{messagesListCommand(deps), messagesShowCommand(deps), messagesResendCommand(deps)},
	}
}

// summary is a message in a list.
type summary struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	State      string    `json:"state"`
	OccurredAt time.Time `json:"occurred_at"`
	Deliveries []struct {
		Handler string `json:"handler"`
		Attempt int    `json:"attempt"`
	} `json:"deliveries"`
}

// page is one page of a list of messages.
type page struct {
	Messages  []json.RawMessage `json:"messages"`
	Next      *string           `json:"next"`
	Freshness json.RawMessage   `json:"freshness,omitempty"`
}

// largestPage is what the API gives at once.
const largestPage = 200

func messagesListCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List messages, the newest first",
		Flags: clientFlags(
			&cli.StringFlag{Name: "state", Usage: "only those in this `STATE`: pending, processing, dispatched, dead-letter"},
			&cli.StringFlag{Name: "type", Usage: "only those of this `TYPE`; a pattern, such as 'order-*', is quoted for the shell"},
			&cli.StringFlag{Name: "handler", Usage: "only those with a delivery for this `HANDLER`"},
			&cli.StringFlag{Name: "from", Usage: "only those that occurred at this `TIME` or later: RFC 3339, or a time ago, like 2h"},
			&cli.StringFlag{Name: "to", Usage: "only those that occurred before this `TIME`"},
			&cli.StringFlag{Name: "text", Aliases: []string{"q"}, Usage: "only those whose id or error contains this `TEXT`"},
			&cli.IntFlag{Name: "limit", Usage: "at most this `NUMBER`", Value: 50},
			&cli.StringFlag{Name: "cursor", Usage: "go on at this `CURSOR`, which the page before named"},
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
				found, err := pages(ctx, posthorn, query, c.Int("limit"))
				if err != nil {
					return err
				}
				out := deps.terminal(c)
				if out.json {
					return out.encode(found)
				}
				return showMessages(out, found)
			})
		},
	}
}

// pages reads as many pages as the limit asks for. One may be short, even empty, before the last.
func pages(ctx context.Context, posthorn *client.Client, query url.Values, limit int) (page, error) {
	all := page{Messages: []json.RawMessage{}}
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(all.Messages), largestPage)))
		var next page
		if err := posthorn.Do(ctx, http.MethodGet, "/v1/messages?"+query.Encode(), nil, &next); err != nil {
			return page{}, err
		}
		all.Messages = append(all.Messages, next.Messages...)
		all.Next, all.Freshness = next.Next, next.Freshness
		if next.Next == nil || *next.Next == "" || len(all.Messages) >= limit {
			return all, nil
		}
		query.Set("cursor", *next.Next)
	}
}

// messagesQuery turns the flags into the filters of the API.
func messagesQuery(c *cli.Context, now time.Time) (url.Values, error) {
	if c.Int("limit") < 1 {
		return nil, misuse("", "--limit is at least 1")
	}
	query := url.Values{}
	for _, filter := range []string{"state", "type", "handler", "tenant", "cursor"} {
		if value := c.String(filter); value != "" {
			query.Set(filter, value)
		}
	}
	if text := c.String("text"); text != "" {
		query.Set("q", text)
	}
	for _, filter := range []string{"from", "to"} {
		at, err := past(c.String(filter), now)
		if err != nil {
			return nil, err
		}
		if at != nil {
			query.Set(filter, at.Format(time.RFC3339Nano))
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
	at, err := moment(text, now)
	if err != nil {
		return nil, misuse("write 2026-01-31T12:00:00+01:00, or 2h for two hours ago", "%q is no time", text)
	}
	return at, nil
}

func showMessages(out *terminal, found page) error {
	if len(found.Messages) == 0 {
		out.printf("no messages\n")
		return nil
	}
	table := out.table("ID", "TYPE", "STATE", "ATTEMPTS", "OCCURRED", "HANDLERS")
	for _, raw := range found.Messages {
		var message summary
		if err := json.Unmarshal(raw, &message); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		attempts, handlers := 0, []string{}
		for _, delivery := range message.Deliveries {
			attempts = max(attempts, delivery.Attempt)
			handlers = append(handlers, delivery.Handler)
		}
		table.row(message.ID, message.Type, out.paint.state(message.State), strconv.Itoa(attempts), out.clock(message.OccurredAt),
			strings.Join(handlers, ", "))
	}
	if err := table.end(); err != nil {
		return err
	}
	if found.Next != nil && *found.Next != "" {
		out.printf("\nmore: --cursor %s\n", clean(*found.Next))
	}
	return nil
}
