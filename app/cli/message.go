package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
)

// detail is a message with what became of it.
type detail struct {
	ID            string     `json:"id"`
	Kind          string     `json:"kind"`
	Type          string     `json:"type"`
	SchemaVersion int        `json:"schema_version"`
	Tenant        string     `json:"tenant"`
	OccurredAt    time.Time  `json:"occurred_at"`
	DeliverAt     *time.Time `json:"deliver_at"`
	OrderingKey   string     `json:"ordering_key"`
	ContentType   string     `json:"content_type"`
	State         string     `json:"state"`
	Deliveries    []delivery `json:"deliveries"`
}

type delivery struct {
	ID            json.Number `json:"id"`
	ResendOf      int64       `json:"resend_of"`
	Handler       string      `json:"handler"`
	State         string      `json:"state"`
	Attempt       int         `json:"attempt"`
	Charged       int         `json:"charged"`
	NextAttemptAt *time.Time  `json:"next_attempt_at"`
	LeaseOwner    string      `json:"lease_owner"`
	LeaseExpires  *time.Time  `json:"lease_expires_at"`
	Fence         int64       `json:"fence"`
	LastError     string      `json:"last_error"`
	FailureClass  string      `json:"failure_class"`
	CompletedAt   *time.Time  `json:"completed_at"`
	Blocked       bool        `json:"blocked"`
	Held          bool        `json:"held"`
	Suppressed    bool        `json:"suppressed"`
	Attempts      []attempt   `json:"attempts"`
	Replays       []replay    `json:"replays"`
}

type attempt struct {
	Attempt   int       `json:"attempt"`
	Class     string    `json:"class"`
	Status    int       `json:"status"`
	Error     string    `json:"error"`
	Excerpt   string    `json:"excerpt"`
	StartedAt time.Time `json:"started_at"`
	Charged   bool      `json:"charged"`
}

type replay struct {
	Actor      string    `json:"actor"`
	Reason     string    `json:"reason"`
	ReplayedAt time.Time `json:"replayed_at"`
}

func messagesShowCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "show",
		Usage:       "Show one message: its deliveries, their attempts, its payload",
		ArgsUsage:   "ID",
		Description: "With --payload the stored bytes, and nothing else, go to the standard output.",
		Flags:       clientFlags(&cli.BoolFlag{Name: "payload", Usage: "write the stored payload, byte for byte", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			path := "/v1/messages/" + url.PathEscape(given[0])
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				out := deps.terminal(c)
				if c.Bool("payload") {
					payload, err := posthorn.Bytes(ctx, scoped(c, path+"/payload"))
					if err == nil {
						_, err = out.out.Write(payload)
					}
					return err
				}
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodGet, scoped(c, path), nil, &answer); err != nil {
					return err
				}
				if out.json {
					return out.value(answer)
				}
				var message detail
				if err := json.Unmarshal(answer, &message); err != nil {
					return fmt.Errorf("read answer: %w", err)
				}
				payload, err := posthorn.Bytes(ctx, scoped(c, path+"/payload"))
				if err != nil {
					return err
				}
				return showMessage(out, message, payload)
			})
		},
	}
}

func showMessage(out *terminal, message detail, payload []byte) error {
	out.printf("%s  %s v%d  %s\n\n", clean(message.ID), clean(message.Type), message.SchemaVersion, out.paint.state(message.State))
	fields := [][2]string{
		{"kind", message.Kind}, {"tenant", message.Tenant}, {"occurred", out.clock(message.OccurredAt)}, {"ordering key", message.OrderingKey},
	}
	if message.DeliverAt != nil {
		fields = append(fields, [2]string{"deliver at", out.clock(*message.DeliverAt) + ", " + out.until(*message.DeliverAt)})
	}
	for _, field := range fields {
		if field[1] != "" {
			out.printf("  %-14s%s\n", field[0], clean(field[1]))
		}
	}
	for _, delivery := range message.Deliveries {
		showDelivery(out, delivery)
	}
	out.printf("\npayload  %s, %d bytes\n", clean(message.ContentType), len(payload))
	if !utf8.Valid(payload) {
		out.printf("  binary; --payload writes it\n")
		return nil
	}
	for line := range strings.Lines(string(payload)) {
		out.printf("  %s\n", strings.TrimRight(clean(line), "\n"))
	}
	return nil
}

// showDelivery prints a delivery and the timeline of its attempts and replays.
func showDelivery(out *terminal, d delivery) {
	again := ""
	if d.ResendOf != 0 {
		again = fmt.Sprintf(", sends %d again", d.ResendOf)
	}
	out.printf("\n%s  %s  %s\n", clean(d.Handler), out.paint.state(d.State), out.paint.dim("delivery "+clean(d.ID.String())+again))
	type moment struct {
		at   time.Time
		text string
	}
	var timeline []moment
	for _, a := range d.Attempts {
		timeline = append(timeline, moment{a.StartedAt, a.line(out)})
	}
	for _, r := range d.Replays {
		timeline = append(timeline, moment{r.ReplayedAt, fmt.Sprintf("  %-11s %s  by %s: %s", "replayed", out.clock(r.ReplayedAt), clean(r.Actor), firstLine(r.Reason))})
	}
	slices.SortStableFunc(timeline, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, moment := range timeline {
		out.printf("%s\n", moment.text)
	}
	switch {
	case d.State == "dispatched" && d.CompletedAt != nil:
		delivered := "delivered"
		if d.Suppressed {
			delivered = "suppressed: handled before"
		}
		out.printf("  attempt %-3d %s  %s  fence %d\n", d.Attempt, out.clock(*d.CompletedAt), delivered, d.Fence)
	case d.State == "dead-letter" && d.CompletedAt != nil:
		out.printf("  %s %s  after %s, %d charged: %s\n", out.paint.red("dead letter"), out.clock(*d.CompletedAt), plural(d.Attempt, "attempt"), d.Charged,
			clean(d.FailureClass)+", "+firstLine(d.LastError))
	case d.State == "processing":
		held := ""
		if d.LeaseExpires != nil {
			held = fmt.Sprintf("  held by %s until %s, %s", clean(d.LeaseOwner), out.clock(*d.LeaseExpires), out.until(*d.LeaseExpires))
		}
		out.printf("  attempt %-3d under way%s  fence %d\n", d.Attempt, held, d.Fence)
	case d.Held:
		out.printf("  held: its handler does not flow; posthorn backlog says why\n")
	case d.Blocked:
		out.printf("  waits for an earlier message of its ordering key\n")
	case d.NextAttemptAt != nil && d.Attempt > 0:
		out.printf("  next attempt %s, %s\n", out.clock(*d.NextAttemptAt), out.until(*d.NextAttemptAt))
	case d.NextAttemptAt != nil:
		out.printf("  due %s, %s\n", out.clock(*d.NextAttemptAt), out.until(*d.NextAttemptAt))
	}
}

// line says how an attempt failed.
func (a attempt) line(out *terminal) string {
	what := a.Class
	if a.Status != 0 {
		what += " " + strconv.Itoa(a.Status)
	}
	line := strings.TrimRight(fmt.Sprintf("  attempt %-3d %s  %s  %s", a.Attempt, out.clock(a.StartedAt), clean(what), firstLine(a.Error)), " ")
	if !a.Charged {
		line += "  (not charged)"
	}
	if a.Excerpt != "" {
		line += "\n              " + out.paint.dim("answered: "+firstLine(a.Excerpt))
	}
	return line
}

// firstLine is foreign text in one line, cut where a terminal would wrap it twice.
func firstLine(text string) string {
	text, _, _ = strings.Cut(clean(strings.TrimSpace(text)), "\n")
	if runes := []rune(text); len(runes) > 160 {
		return string(runes[:159]) + "…"
	}
	return text
}
