package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

// indicators are what an operator watches, in total or for one handler.
type indicators struct {
	Handler          string   `json:"handler"`
	Hold             string   `json:"hold"`
	Pending          int64    `json:"pending"`
	Held             int64    `json:"held"`
	Failed           int64    `json:"failed"`
	OldestPendingAge *float64 `json:"oldest_pending_age_seconds"`
	Attempts         int64    `json:"attempts"`
	DurationP50      *float64 `json:"duration_p50_seconds"`
	DurationP99      *float64 `json:"duration_p99_seconds"`
	SuccessRate      *float64 `json:"success_rate"`
	Breaker          struct {
		State     string     `json:"state"`
		Since     *time.Time `json:"since"`
		NextProbe *time.Time `json:"next_probe"`
	} `json:"breaker"`
}

// hold says why a lane does not flow: it is held, or its target cannot be reached.
func (i indicators) hold() string {
	switch {
	case i.Hold != "" || i.Breaker.Since == nil:
		return firstLine(i.Hold)
	case i.Breaker.NextProbe == nil:
		return "unreachable since " + i.Breaker.Since.Local().Format(time.DateTime) + "; a probe is out"
	default:
		return "unreachable since " + i.Breaker.Since.Local().Format(time.DateTime) + "; next probe at " + i.Breaker.NextProbe.Local().Format(time.TimeOnly)
	}
}

func backlogCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:  "backlog",
		Usage: "Show what waits, what failed, and how deliveries go",
		Description: `Failed are dead letters now; oldest is how long the oldest pending delivery has been due. Attempts count since the start of the
process, P50 and P99 are the durations of the latest, success is of the last five minutes.`,
		Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 0, func([]string) (request, error) {
				return request{http.MethodGet, scoped(c, "/v1/backlog"), nil, showBacklog}, nil
			})
		},
	}
}

func showBacklog(out *terminal, answer json.RawMessage) error {
	var backlog struct {
		Total    indicators   `json:"total"`
		Handlers []indicators `json:"handlers"`
	}
	if err := json.Unmarshal(answer, &backlog); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	table := out.table("HANDLER", "PENDING", "HELD", "FAILED", "OLDEST", "ATTEMPTS", "P50", "P99", "SUCCESS", "HOLD")
	backlog.Total.Handler = "total"
	for _, line := range append(backlog.Handlers, backlog.Total) {
		failed := out.paint.plain(strconv.FormatInt(line.Failed, 10))
		if line.Failed > 0 {
			failed = out.paint.red(strconv.FormatInt(line.Failed, 10))
		}
		table.row(line.Handler, strconv.FormatInt(line.Pending, 10), strconv.FormatInt(line.Held, 10), failed,
			seconds(line.OldestPendingAge), strconv.FormatInt(line.Attempts, 10), seconds(line.DurationP50), seconds(line.DurationP99),
			share(line.SuccessRate), line.hold())
	}
	return table.end()
}

func seconds(value *float64) string {
	if value == nil {
		return ""
	}
	return span(time.Duration(*value * float64(time.Second)))
}

func share(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value*100, 'f', 1, 64) + " %"
}
