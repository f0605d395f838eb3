package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

func alertsCommand(deps Deps) *cli.Command {
	ask := func(c *cli.Context, method, path string, show func(*terminal, json.RawMessage) error) error {
		return deps.ask(c, 0, func([]string) (request, error) { return request{method, path, nil, show}, nil })
	}
	return &cli.Command{
		Name:  "alerts",
		Usage: "Show what is wrong now, with what to do",
		Description: `Thresholds are settings that a use case names beside its delivery target; posthorn settings shows them. They are watched while
posthorn serve runs. Who is told of an alert is a destination that posthorn.yaml names: alerts: {destination: NAME}.`,
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "List the alerts that are raised", Flags: clientFlags(),
				Action: func(c *cli.Context) error {
					return ask(c, http.MethodGet, scoped(c, "/v1/alerts"), showAlerts)
				}},
			{Name: "tell", Usage: "Tell the receiver again of what is wrong now", Flags: serverFlags(),
				Action: func(c *cli.Context) error {
					return ask(c, http.MethodPost, "/v1/alerts/tell", func(out *terminal, answer json.RawMessage) error {
						var told struct{ Alerts int }
						if err := json.Unmarshal(answer, &told); err != nil {
							return fmt.Errorf("read answer: %w", err)
						}
						out.printf("told of %s\n", plural(told.Alerts, "alert"))
						return nil
					})
				}},
		},
	}
}

func showAlerts(out *terminal, answer json.RawMessage) error {
	var list struct {
		Alerts []struct {
			Alert, Title, Handler, Unit string
			Value, Threshold            float64
			RaisedAt                    time.Time `json:"raised_at"`
			Runbooks                    []string
		}
		Receiver *struct {
			Destination, Failure string
			Waiting              int
		}
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(list.Alerts) == 0 {
		out.printf("nothing is wrong\n")
	} else {
		table := out.table("ALERT", "HANDLER", "VALUE", "THRESHOLD", "RAISED", "RUNBOOK")
		for _, a := range list.Alerts {
			table.row(out.paint.red(clean(a.Alert)), a.Handler, measured(a.Value, a.Unit), measured(a.Threshold, a.Unit), out.until(a.RaisedAt), strings.Join(a.Runbooks, ", "))
		}
		if err := table.end(); err != nil {
			return err
		}
		out.printf("posthorn records show RUNBOOK says what to do.\n")
	}
	if r := list.Receiver; r != nil && r.Waiting > 0 {
		out.printf("%s has not been told of %s yet: %s\n", clean(r.Destination), plural(r.Waiting, "change"), firstLine(clean(r.Failure)))
	}
	return nil
}

// measured writes a value in its unit.
func measured(value float64, unit string) string {
	switch unit {
	case "seconds":
		return span(time.Duration(value * float64(time.Second)))
	case "ratio":
		return strconv.FormatFloat(value*100, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
}
