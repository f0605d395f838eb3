package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func connectionsCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "connections",
		Usage: "See who listens to live updates, and disconnect them",
		Subcommands: []*cli.Command{
			{
				Name:  "list",
				Usage: "List who listens, to what, since when, and how far behind",
				Flags: clientFlags(),
				Action: func(c *cli.Context) error {
					if _, err := arguments(c, 0, 0); err != nil {
						return err
					}
					return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
						return deps.exchange(ctx, c, posthorn, http.MethodGet, scoped(c, "/v1/connections"), nil, showConnections)
					})
				},
			},
			{
				Name:      "disconnect",
				Usage:     "Close one stream by its id, or all of a user's",
				ArgsUsage: "ID|USER",
				Description: `Whoever still has access comes back by themselves. To keep somebody out, revoke their API token: posthorn tokens revoke. A user is named
as the list does, with the tenant before a slash.`,
				Flags: clientFlags(&cli.StringFlag{Name: "reason", Usage: "say `WHY`; the audit keeps it"}),
				Action: func(c *cli.Context) error {
					given, err := arguments(c, 1, 1)
					if err != nil {
						return err
					}
					body := map[string]string{"id": given[0], "reason": c.String("reason")}
					if strings.Contains(given[0], "/") {
						body = map[string]string{"user": given[0], "reason": c.String("reason")}
					}
					return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
						return deps.exchange(ctx, c, posthorn, http.MethodPost, scoped(c, "/v1/connections/disconnect"), body, func(out *terminal, answer json.RawMessage) error {
							var done struct{ Closed int }
							if err := json.Unmarshal(answer, &done); err != nil {
								return fmt.Errorf("read answer: %w", err)
							}
							out.printf("%s  %d\n", out.paint.green("disconnected"), done.Closed)
							return nil
						})
					})
				},
			},
		},
	}
}

func showConnections(out *terminal, answer json.RawMessage) error {
	var list struct {
		Connections []struct {
			ID, User, Role, By, Remote string
			Topics                     []string
			Since                      time.Time
			Lag                        float64 `json:"lag_seconds"`
			Queued                     int
			Delivered, Coalesced       uint64
		}
		Total           int
		Closed, Refused map[string]uint64
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(list.Connections) == 0 {
		out.printf("nobody listens\n")
	} else {
		table := out.table("ID", "USER", "BY", "FROM", "SINCE", "LAG", "DELIVERED", "COALESCED", "TOPICS")
		for _, c := range list.Connections {
			lag := "–"
			if c.Lag > 0 {
				lag = (time.Duration(c.Lag*1000) * time.Millisecond).String()
			}
			table.row(c.ID, c.User, c.By, c.Remote, out.clock(c.Since), lag, fmt.Sprint(c.Delivered), fmt.Sprint(c.Coalesced), strings.Join(c.Topics, " "))
		}
		if err := table.end(); err != nil {
			return err
		}
	}
	for name, counts := range map[string]map[string]uint64{"closed": list.Closed, "refused": list.Refused} {
		if len(counts) == 0 {
			continue
		}
		var parts []string
		for reason, n := range counts {
			parts = append(parts, fmt.Sprintf("%s %d", clean(reason), n))
		}
		slices.Sort(parts)
		out.printf("\n%s since the start: %s\n", name, strings.Join(parts, ", "))
	}
	return nil
}
