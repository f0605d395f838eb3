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

// auditPage is a part of the audit.
type auditPage struct {
	Entries []json.RawMessage `json:"entries"`
	Next    *string           `json:"next"`
}

// auditEntry is one thing that somebody did.
type auditEntry struct {
	At                             time.Time
	Actor, Action, Subject, Detail string
	Delivery                       int64
	Handler, Failure               string
}

func auditCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "audit",
		Usage: "Show what was done by whom, the newest first",
		Description: `Replays are among it, each with its reason and the failure that it answers; so are changes of destinations and API tokens, and what was
cancelled, skipped or sent again. It needs the role operator.`,
		Flags: clientFlags(
			&cli.IntFlag{Name: "limit", Usage: "at most this `NUMBER`", Value: 50},
			&cli.StringFlag{Name: "cursor", Usage: "go on at this `CURSOR`, which the page before named"},
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			if c.Int("limit") < 1 {
				return misuse("", "--limit is at least 1")
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				found, err := auditPages(ctx, c, posthorn)
				if err != nil {
					return err
				}
				out := deps.terminal(c)
				if out.json {
					return out.encode(found)
				}
				return showAudit(out, found)
			})
		},
	}
}

func auditPages(ctx context.Context, c *cli.Context, posthorn *client.Client) (auditPage, error) {
	all := auditPage{Entries: []json.RawMessage{}}
	query := url.Values{}
	if cursor := c.String("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	for {
		query.Set("limit", strconv.Itoa(min(c.Int("limit")-len(all.Entries), largestPage)))
		var next auditPage
		if err := posthorn.Do(ctx, http.MethodGet, scoped(c, "/v1/audit?"+query.Encode()), nil, &next); err != nil {
			return auditPage{}, err
		}
		all.Entries, all.Next = append(all.Entries, next.Entries...), next.Next
		if next.Next == nil || len(all.Entries) >= c.Int("limit") {
			return all, nil
		}
		query.Set("cursor", *next.Next)
	}
}

func showAudit(out *terminal, found auditPage) error {
	if len(found.Entries) == 0 {
		out.printf("nothing was done yet\n")
		return nil
	}
	table := out.table("AT", "WHO", "WHAT", "TO", "DETAIL")
	for _, raw := range found.Entries {
		var e auditEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		detail := e.Detail
		if e.Delivery != 0 {
			detail = fmt.Sprintf("delivery %d to %s: %s; it answers: %s", e.Delivery, e.Handler, e.Detail, e.Failure)
		}
		table.row(out.clock(e.At), e.Actor, e.Action, e.Subject, firstLine(detail))
	}
	if err := table.end(); err != nil {
		return err
	}
	if found.Next != nil {
		out.printf("\nmore: --cursor %s\n", clean(*found.Next))
	}
	return nil
}
