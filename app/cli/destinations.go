package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

func destinationsCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "destinations",
		Usage: "Say where messages are delivered",
		Subcommands: []*cli.Command{
			destinationsCreateCommand(deps),
			destinationsListCommand(deps),
			destinationsShowCommand(deps),
			destinationsActCommand(deps, "pause", "Hold a destination's deliveries; nothing is dropped"),
			destinationsActCommand(deps, "resume", "Deliver again what was held"),
			destinationsChangeCommand(deps),
			destinationsTestCommand(deps),
			destinationsRotateCommand(deps),
			destinationsBackfillCommand(deps),
			destinationsDeleteCommand(deps),
		},
	}
}

// destination is a destination as the API shows it.
type destination struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	URL    string   `json:"url"`
	Path   string   `json:"path"`
	Types  []string `json:"types"`
	State  string   `json:"state"`
	Hold   string   `json:"hold"`
	Secret string   `json:"secret"`
}

func (d destination) target() string {
	switch {
	case d.URL != "":
		return d.URL
	case d.Kind == "pull":
		return "asked for at /v1/pull/" + d.Name
	}
	return d.Path
}

func destinationsCreateCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "Create a destination",
		ArgsUsage: "NAME",
		Description: `A webhook's signing secret is shown this once. Patterns are quoted for the shell: --types 'order-*'.
A private address, as of a receiver on this machine, must be allowed in posthorn.yaml: egress: {allow: ["127.0.0.0/8"]};
so must the folder of a file destination, unless it is the folder files in the data folder: files: {allow: [/var/lib/orders]}.`,
		Flags: clientFlags(bounding("a setting", "block",
			&cli.StringFlag{Name: "kind", Usage: "the `KIND`: webhook, file or pull", Value: "webhook"},
			&cli.StringFlag{Name: "url", Usage: "a webhook's `URL`"},
			&cli.PathFlag{Name: "file", Aliases: []string{"path"}, Usage: "the `FILE` that gets a JSON line for each message; a relative path lies in the folder files of the data folder"},
			&cli.StringSliceFlag{Name: "types", Usage: "the event types it gets, as `PATTERNS` (default: all)"},
		)...),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			body, err := destinationBody(c, given[0])
			if err != nil {
				return err
			}
			return deps.withClient(c, creating, func(ctx context.Context, posthorn *client.Client) error {
				return deps.exchange(ctx, c, posthorn, http.MethodPost, "/v1/destinations", body, showSecret("created"))
			})
		},
	}
}

func destinationBody(c *cli.Context, name string) (map[string]any, error) {
	body := map[string]any{"name": name, "kind": c.String("kind"), "types": []string{"*"}}
	if types := c.StringSlice("types"); len(types) > 0 {
		body["types"] = types
	}
	switch c.String("kind") {
	case "webhook":
		if c.String("url") == "" {
			return nil, misuse("posthorn destinations create "+name+" --url https://example.org/hook", "a webhook needs an address")
		}
		body["url"] = c.String("url")
	case "file":
		if c.Path("file") == "" {
			return nil, misuse("posthorn destinations create "+name+" --kind file --file events.jsonl", "a file destination needs a file")
		}
		body["path"] = c.Path("file") // a relative one lies in the data folder's own folder for files
	case "pull":
	default:
		return nil, misuse("", "the kind of a destination is webhook, file or pull")
	}
	bounds(c, body)
	if tenant := c.String("tenant"); tenant != "" {
		body["tenant"] = tenant
	}
	return body, nil
}

// showSecret shows a destination with the secret that it has just been given.
func showSecret(what string) func(*terminal, json.RawMessage) error {
	return func(out *terminal, answer json.RawMessage) error {
		var d destination
		if err := json.Unmarshal(answer, &d); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		out.printf("%s  %s  %s  %s\n", out.paint.green(what), clean(d.Name), clean(strings.Join(d.Types, ", ")), clean(d.target()))
		if d.Secret != "" {
			out.printf("\n  %s\n\nThis signing secret is shown this once. Give it to the receiver, which checks each webhook-signature by it.\n",
				clean(d.Secret))
		}
		return nil
	}
}

func destinationsListCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the destinations",
		Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				found, err := destinationPages(ctx, posthorn, scoped(c, "/v1/destinations?limit="+strconv.Itoa(largestPage)))
				if err != nil {
					return err
				}
				out := deps.terminal(c)
				if out.json {
					return out.encode(map[string]any{"destinations": found})
				}
				return showDestinations(out, found)
			})
		},
	}
}

// destinationPages reads all pages of the list of destinations.
func destinationPages(ctx context.Context, posthorn *client.Client, path string) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	for cursor := ""; ; {
		var page struct {
			Destinations []json.RawMessage `json:"destinations"`
			Next         *string           `json:"next"`
		}
		if err := posthorn.Do(ctx, http.MethodGet, path+cursor, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Destinations...)
		if page.Next == nil || *page.Next == "" {
			return all, nil
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
}

func showDestinations(out *terminal, found []json.RawMessage) error {
	if len(found) == 0 {
		out.printf("no destinations; `posthorn destinations create NAME --url URL` makes one\n")
		return nil
	}
	table := out.table("NAME", "KIND", "STATE", "TYPES", "TARGET", "HOLD")
	for _, raw := range found {
		var d destination
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		table.row(d.Name, d.Kind, out.paint.state(d.State), strings.Join(d.Types, ", "), d.target(), firstLine(d.Hold))
	}
	return table.end()
}

func destinationsShowCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show one destination",
		ArgsUsage: "NAME",
		Flags:     clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				return request{http.MethodGet, scoped(c, destinationPath(given[0])), nil, showDestination}, nil
			})
		},
	}
}

func destinationPath(name string) string { return "/v1/destinations/" + url.PathEscape(name) }
