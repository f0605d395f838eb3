package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/sethvargo/go-retry"
	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/outbox"
)

// pullWaits is how long one request waits for a delivery: well within the server's own bound and the client's patience.
const pullWaits = "20s"

func pullCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "Run a command for each delivery of a pull destination",
		ArgsUsage: "DESTINATION [flags] -- COMMAND [ARGUMENT…]",
		Description: `COMMAND gets the payload on its standard input, and in its environment POSTHORN_DELIVERY, POSTHORN_ATTEMPT, POSTHORN_MESSAGE (by which a repetition is
known), POSTHORN_TYPE, POSTHORN_SCHEMA_VERSION, POSTHORN_OCCURRED_AT, POSTHORN_ORDERING_KEY, POSTHORN_CONTENT_TYPE and POSTHORN_HEADERS (JSON).

Its exit code says how it went: 0 delivered · 65 rejected, no retry can mend it · 75 not now, retried and not charged · any other failed,
retried. The last line of its standard error is kept with the attempt. While it runs its lease is extended; when the lease is lost all the
same, the command is killed, since somebody else has the delivery.

It goes on when Posthorn was away for a while. Ctrl-C or SIGTERM ends it after the commands that run.`,
		Flags: clientFlags(
			&cli.BoolFlag{Name: "once", Usage: "end when nothing is due any more", DisableDefaultText: true},
			&cli.IntFlag{Name: "parallel", Usage: "run this `NUMBER` of commands side by side, 1 to 256", Value: 1},
		),
		Action: func(c *cli.Context) error {
			given := c.Args().Slice()
			parallel := c.Int("parallel")
			switch {
			case len(given) < 2:
				return misuse(c.Command.UsageText, "name the destination, and after -- the command to run")
			case parallel < 1 || parallel > 256:
				return misuse("the destination's own concurrency bounds it, too", "--parallel must be 1 to 256")
			}
			if _, err := exec.LookPath(given[1]); err != nil {
				return &Failure{Code: ExitUsage, Sentence: "the command cannot be run", Cause: err, Advice: "name a program in PATH, or with its path; sh -c '…' runs a line of shell"}
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				if posthorn.Local() {
					return &Failure{Code: ExitFailed, Sentence: client.ErrNotRunning.Error(), Advice: "start one with posthorn serve, or posthorn demo"}
				}
				p := &puller{
					posthorn: posthorn, once: c.Bool("once"), out: deps.terminal(c), errors: deps.Err, environment: childEnvironment(), command: given[1:],
					ask: func(query url.Values) string {
						return scoped(c, "/v1/pull/"+url.PathEscape(given[0])+"?"+query.Encode())
					},
					settle: func(id outbox.DeliveryID) string {
						return scoped(c, fmt.Sprintf("/v1/pull/%s/%d", url.PathEscape(given[0]), id))
					},
				}
				return p.run(ctx, parallel)
			})
		},
	}
}

// run pulls until ctx ends, or, once, until nothing is due; or until a request is refused.
func (p *puller) run(ctx context.Context, parallel int) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var work sync.WaitGroup
	for range parallel {
		work.Go(func() {
			if err := p.loop(running); err != nil {
				stop(err)
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	return context.Cause(running)
}

func (p *puller) loop(ctx context.Context) error {
	backoff := pullBackoff()
	for ctx.Err() == nil {
		got, err := p.pull(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (p.once || !passing(err)):
			return err
		case err != nil:
			wait, _ := backoff.Next()
			p.say("%s; trying again in %s\n", clean(err.Error()), wait.Round(100*time.Millisecond))
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			continue
		case len(got) == 0 && p.once:
			return nil
		}
		backoff = pullBackoff()
		for _, d := range got {
			p.handle(ctx, d)
		}
	}
	return nil
}

// pull asks for one delivery.
func (p *puller) pull(ctx context.Context) ([]pulled, error) {
	query := url.Values{"max": {"1"}, "wait": {pullWaits}}
	if p.once {
		query.Set("wait", "1s")
	}
	var page struct {
		Deliveries []pulled `json:"deliveries"`
		Hold       string   `json:"hold"`
	}
	err := p.posthorn.Do(ctx, http.MethodGet, p.ask(query), nil, &page)
	if page.Hold != "" {
		p.say("the destination is held: %s\n", clean(page.Hold))
	}
	return page.Deliveries, err
}

// passing: a request that failed like this may do better later.
func passing(err error) bool {
	var unreachable *client.Unreachable
	var problem *client.Problem
	return errors.As(err, &unreachable) || errors.As(err, &problem) && (problem.Status >= 500 || problem.Status == http.StatusTooManyRequests)
}

func pullBackoff() retry.Backoff {
	return retry.WithJitterPercent(50, retry.WithCappedDuration(30*time.Second, retry.NewExponential(500*time.Millisecond)))
}
