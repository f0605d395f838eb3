package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func tokensCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "tokens",
		Usage:       "Give programs and people API tokens",
		Subcommands: []*cli.Command{tokensCreateCommand(deps), tokensListCommand(deps), tokensRevokeCommand(deps)},
	}
}

// token is an API token as the API shows it; its text only in the answer that creates it.
type token struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Tenant    string     `json:"tenant"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Text      string     `json:"token"`
}

func tokensCreateCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "create",
		Usage:       "Create an API token",
		Description: "It is shown this once: only its hash is stored. It works with a Posthorn that runs or not, and before the first start.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "role", Usage: "the `ROLE` says what it may do: viewer, operator or admin", Value: "viewer"},
			&cli.StringFlag{Name: "name", Usage: "the `NAME` that audit rows call whoever uses it by (default: made up)"},
			&cli.StringFlag{Name: "expires", Aliases: []string{"expires-at"}, Usage: "stop accepting it at this `TIME`: RFC 3339, or from now, like 720h"},
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			body := map[string]any{"role": c.String("role")}
			for _, field := range []string{"name", "tenant"} {
				if value := c.String(field); value != "" {
					body[field] = value
				}
			}
			expires, err := moment(c.String("expires"), deps.Now())
			if err != nil {
				return err
			}
			if expires != nil {
				body["expires_at"] = expires
			}
			return deps.withClient(c, creating, func(ctx context.Context, posthorn *client.Client) error {
				return deps.exchange(ctx, c, posthorn, http.MethodPost, "/v1/tokens", body, showToken)
			})
		},
	}
}

func showToken(out *terminal, answer json.RawMessage) error {
	var created token
	if err := json.Unmarshal(answer, &created); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.printf("%s  %s  %s  %s\n\n  %s\n\nThis API token is shown this once. Send it as Authorization: Bearer …\n",
		out.paint.green("created"), clean(created.ID), clean(created.Name), clean(created.Role), clean(created.Text))
	return nil
}

func tokensListCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the API tokens",
		Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 0, func([]string) (request, error) {
				return request{http.MethodGet, scoped(c, "/v1/tokens"), nil, showTokens}, nil
			})
		},
	}
}

func showTokens(out *terminal, answer json.RawMessage) error {
	var list struct {
		Tokens []token `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(list.Tokens) == 0 {
		out.printf("no API tokens; `posthorn tokens create` makes one\n")
		return nil
	}
	table := out.table("ID", "NAME", "ROLE", "TENANT", "CREATED", "IN FORCE")
	for _, t := range list.Tokens {
		force := out.paint.green("yes")
		switch {
		case t.RevokedAt != nil:
			force = out.paint.red("revoked " + out.until(*t.RevokedAt))
		case t.ExpiresAt != nil && !t.ExpiresAt.After(out.now):
			force = out.paint.red("expired " + out.until(*t.ExpiresAt))
		case t.ExpiresAt != nil:
			force = out.paint.green("ends " + out.until(*t.ExpiresAt))
		}
		table.row(t.ID, t.Name, t.Role, t.Tenant, out.clock(t.CreatedAt), force)
	}
	return table.end()
}

func tokensRevokeCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "Revoke an API token, at once",
		ArgsUsage: "ID|NAME",
		Flags:     clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				return request{http.MethodDelete, scoped(c, "/v1/tokens/"+url.PathEscape(given[0])), nil, done("revoked", given[0])}, nil
			})
		},
	}
}
