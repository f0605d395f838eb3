package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/realtime"
)

// tailWindow is how many of the newest messages tail compares with what it has shown.
const tailWindow = 100

func tailCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "tail",
		Usage: "Show live what happens to messages",
		Description: `A line for each change of the newest messages, as it is seen: what came and went between two looks is shown once. It goes on by itself after the
connection, or Posthorn, was gone. Ctrl-C ends it.`,
		Flags: clientFlags(
			&cli.StringFlag{Name: "type", Usage: "only messages of this `TYPE`; a pattern, such as 'order-*', is quoted for the shell"},
			&cli.StringFlag{Name: "handler", Usage: "only those with a delivery for this `HANDLER`"},
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				query := url.Values{"limit": {strconv.Itoa(tailWindow)}}
				for _, filter := range []string{"type", "handler"} {
					if value := c.String(filter); value != "" {
						query.Set(filter, value)
					}
				}
				t := &tail{posthorn: posthorn, path: scoped(c, "/v1/messages?"+query.Encode()), out: deps.terminal(c), shown: map[int64]string{}}
				err := posthorn.Watch(ctx, scoped(c, "/v1/events"), []realtime.Topic{"backlog"}, func() { t.look(ctx) }, func(cause error, wait time.Duration) {
					lost := "connection lost"
					if bye := (*realtime.ByeError)(nil); errors.As(cause, &bye) {
						lost = "the server ended the stream (" + clean(bye.Reason) + ")"
					}
					fmt.Fprintf(deps.Err, "%s, trying again in %s\n", lost, wait.Round(100*time.Millisecond))
				})
				if ctx.Err() != nil {
					err = nil // it was told to end
				}
				if errors.Is(err, client.ErrNotRunning) {
					return &Failure{Code: ExitFailed, Sentence: err.Error(), Advice: "start one with posthorn serve, or posthorn demo"}
				}
				return err
			})
		},
	}
}

// tail shows what changed since it looked last. A notification says only that something did; the query is the truth.
type tail struct {
	posthorn *client.Client
	path     string
	out      *terminal
	shown    map[int64]string // how each delivery of the window was shown, by its number: a message sent again has two for one handler
	begun    bool
}

// tailed is what tail reads of a message.
type tailed struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Deliveries []struct {
		ID           int64   `json:"id"`
		Handler      string  `json:"handler"`
		State        string  `json:"state"`
		Attempt      int     `json:"attempt"`
		FailureClass *string `json:"failure_class"`
		LastError    *string `json:"last_error"`
	} `json:"deliveries"`
}

func (t *tail) look(ctx context.Context) {
	var page struct {
		Messages []tailed `json:"messages"`
	}
	// A look that fails is made up for by the one after the next change or the reconnection.
	if err := t.posthorn.Do(ctx, http.MethodGet, t.path, nil, &page); err != nil {
		return
	}
	slices.Reverse(page.Messages)
	seen := map[int64]string{}
	for _, m := range page.Messages {
		for _, d := range m.Deliveries {
			now := fmt.Sprint(d.State, d.Attempt)
			seen[d.ID] = now
			if t.begun && t.shown[d.ID] != now {
				t.line(m, d.Handler, d.State, d.Attempt, d.LastError)
			}
		}
	}
	t.shown, t.begun = seen, true
}

func (t *tail) line(m tailed, handler, state string, attempt int, lastError *string) {
	at := time.Now()
	if t.out.json {
		line := map[string]any{"time": at.UTC(), "id": m.ID, "type": m.Type, "handler": handler, "state": state, "attempt": attempt}
		if lastError != nil {
			line["last_error"] = *lastError
		}
		text, err := json.Marshal(line)
		if err == nil {
			t.out.printf("%s\n", text)
		}
		return
	}
	failed := ""
	if lastError != nil && state != "dispatched" {
		failed = "  " + firstLine(*lastError)
	}
	t.out.printf("%s  %s%*s  %-18s  %-20s  attempt %-2d  %s%s\n", at.Format(time.TimeOnly), t.out.paint.state(state), max(0, 11-len(state)), "", clean(handler), clean(m.Type), attempt, clean(m.ID), failed)
}
