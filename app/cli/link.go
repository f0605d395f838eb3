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

func linkCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "link",
		Usage:       "Make a one-time link that signs a browser in",
		Description: `It signs in as whoever runs this command, for --tenant, once, within a quarter of an hour, and is void when the process ends.`,
		Flags:       clientFlags(),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				if posthorn.Local() {
					return &Failure{Code: ExitFailed, Sentence: client.ErrNotRunning.Error(), Advice: "start one with posthorn serve, or posthorn demo"}
				}
				return deps.exchange(ctx, c, posthorn, http.MethodPost, scoped(c, "/v1/session/links"), nil, showLink)
			})
		},
	}
}

func showLink(out *terminal, answer json.RawMessage) error {
	var link struct {
		URL       string    `json:"url"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(answer, &link); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.printf("%s\n", link.URL)
	return nil
}
