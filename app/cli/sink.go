package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/sink"
)

func sinkCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "sink",
		Usage: "Run a test receiver that checks signatures, suppresses repeats and misbehaves on demand",
		Description: `It prints a line for each delivery. GET /_sink/stats has its counters; POST /_sink/misbehave changes how it behaves while it runs, by JSON
such as {"status": 503, "times": 2} or {"rate": 0.5, "delay": "2s"}; {} has it behave again, and GET shows what is in force.
Without a --secret nothing is verified. With a --fail-rate and no fault named, it answers 503.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "listen on this `ADDRESS`", Value: "127.0.0.1:9900", EnvVars: []string{"POSTHORN_SINK_LISTEN"}},
			&cli.StringSliceFlag{Name: "secret", Usage: "check signatures by this `SECRET`, whsec_… (any of several)", EnvVars: []string{"POSTHORN_SINK_SECRET"}},
			&cli.PathFlag{Name: "journal", Usage: "append a JSON line for each delivery to this `FILE`, and remember what it holds"},
			&cli.IntFlag{Name: "status", Usage: "answer this `STATUS`", DefaultText: "200"},
			&cli.StringFlag{Name: "retry-after", Usage: "answer with this Retry-After `VALUE`"},
			&cli.DurationFlag{Name: "delay", Usage: "wait this `LONG` before answering", DefaultText: "not at all"},
			&cli.DurationFlag{Name: "drip", Usage: "wait this `LONG` between the bytes of the answer", DefaultText: "not at all"},
			&cli.Int64Flag{Name: "body-bytes", Usage: "answer with a body of this `SIZE`, in bytes", DefaultText: "none"},
			&cli.StringFlag{Name: "reset", Usage: "reset the connection `WHEN`: before-status or after-status"},
			&cli.BoolFlag{Name: "duplicates", Usage: "handle a new message, but answer as if it had failed", DisableDefaultText: true},
			&cli.Float64Flag{Name: "fail-rate", Usage: "misbehave for this `SHARE` of the requests, 0 to 1", DefaultText: "all, where a fault is named"},
			&cli.IntFlag{Name: "times", Usage: "behave again after this `NUMBER` of misbehaved requests", DefaultText: "never"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			receiver, err := sink.New(sink.Config{
				Secrets: c.StringSlice("secret"), Misbehaviour: misbehaviour(c), Journal: c.Path("journal"), Out: deps.Out, JSON: c.Bool("json"),
			})
			if err != nil {
				return &Failure{Code: ExitUsage, Sentence: err.Error()}
			}
			defer receiver.Close()
			listener, err := (&net.ListenConfig{}).Listen(c.Context, "tcp", c.String("listen"))
			if err != nil {
				return &Failure{Code: ExitFailed, Sentence: "the sink cannot listen", Cause: err, Advice: "choose another address with --listen"}
			}
			fmt.Fprintf(deps.Err, "sink: listening on http://%s\n", listener.Addr())
			return serveUntilDone(c.Context, listener, receiver)
		},
	}
}

// misbehaviour reads the flags.
func misbehaviour(c *cli.Context) sink.Misbehaviour {
	m := sink.Misbehaviour{
		Status: c.Int("status"), RetryAfter: c.String("retry-after"), Delay: c.Duration("delay"), Drip: c.Duration("drip"),
		BodyBytes: c.Int64("body-bytes"), Reset: sink.Reset(c.String("reset")), Duplicates: c.Bool("duplicates"), Times: c.Int("times"),
	}
	if c.IsSet("fail-rate") {
		m.Rate = c.Float64("fail-rate")
		if m.Rate == 0 {
			return sink.Misbehaviour{}
		}
		if m == (sink.Misbehaviour{Rate: m.Rate, Times: m.Times}) {
			m.Status = http.StatusServiceUnavailable
		}
	}
	return m
}

// serveUntilDone serves until the context ends, then lets requests that are under way finish for a moment.
func serveUntilDone(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return nil
}
