package cli

import (
	"context"
	"encoding/json"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

// request is what a command asks the API, and how the answer is shown.
type request struct {
	method, path string
	body         any
	show         func(*terminal, json.RawMessage) error
}

// ask carries out a command that takes so many arguments and is one request.
func (d Deps) ask(c *cli.Context, wanted int, of func(given []string) (request, error)) error {
	given, err := arguments(c, wanted, wanted)
	if err != nil {
		return err
	}
	r, err := of(given)
	if err != nil {
		return err
	}
	return d.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
		return d.exchange(ctx, c, posthorn, r.method, r.path, r.body, r.show)
	})
}

// exchange makes one request and shows its answer: as JSON, or by show.
func (d Deps) exchange(ctx context.Context, c *cli.Context, posthorn *client.Client, method, path string, body any, show func(*terminal, json.RawMessage) error) error {
	var answer json.RawMessage
	if err := posthorn.Do(ctx, method, path, body, &answer); err != nil {
		return err
	}
	out := d.terminal(c)
	if out.json {
		if len(answer) == 0 {
			answer = json.RawMessage("{}")
		}
		return out.value(answer)
	}
	return show(out, answer)
}
