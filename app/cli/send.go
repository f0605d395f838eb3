package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/outbox"
)

const jsonType = "application/json"

// outgoing is the body of POST /v1/messages but for the payload.
type outgoing struct {
	Type          string     `json:"type"`
	SchemaVersion int        `json:"schema_version,omitempty"`
	ID            string     `json:"id,omitempty"`
	OrderingKey   string     `json:"ordering_key,omitempty"`
	DeliverAt     *time.Time `json:"deliver_at,omitempty"`
	ContentType   string     `json:"content_type,omitempty"`
	Tenant        string     `json:"tenant,omitempty"`
}

// staged is what the API answers about a message that it has staged.
type staged struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Deliveries int    `json:"deliveries"`
}

func sendCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "send",
		Usage:     "Stage a message",
		ArgsUsage: "TYPE [PAYLOAD|-|@FILE]",
		Description: `The payload is taken byte for byte from the argument, from the standard input (-) or from a file (@FILE); without one it is {}.
A message with an --id is staged once, however often the command is repeated.

Use it for a fact that has no transaction of its own. A program that changes its data and then sends is told of by
POST /v1/transactions instead: between two commits a crash would lose the message.`,
		Flags: clientFlags(
			&cli.StringFlag{Name: "id", Usage: "the message's own `ID`, [A-Za-z0-9_-], at most 64"},
			&cli.StringFlag{Name: "key", Aliases: []string{"ordering-key"}, Usage: "deliver strictly in order with all messages of this ordering `KEY`"},
			&cli.StringFlag{Name: "at", Aliases: []string{"deliver-at"}, Usage: "deliver not before this `TIME`: RFC 3339, or from now, like 10m"},
			&cli.IntFlag{Name: "schema-version", Usage: "the schema `VERSION` of the payload", Value: 1},
			&cli.StringFlag{Name: "content-type", Usage: "the media `TYPE` of the payload", Value: jsonType},
		),
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			message := outgoing{
				Type: given[0], SchemaVersion: c.Int("schema-version"), ID: c.String("id"), OrderingKey: c.String("key"),
				ContentType: c.String("content-type"), Tenant: c.String("tenant"),
			}
			if message.DeliverAt, err = moment(c.String("at"), deps.Now()); err != nil {
				return err
			}
			payload := []byte("{}")
			if len(given) == 2 {
				if payload, err = deps.payload(given[1]); err != nil {
					return err
				}
			}
			body, err := withPayload(message, payload)
			if err != nil {
				return err
			}
			return deps.withClient(c, creating, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodPost, "/v1/messages", body, &answer); err != nil {
					return err
				}
				return showStaged(deps.terminal(c), answer)
			})
		},
	}
}

func showStaged(out *terminal, answer json.RawMessage) error {
	if out.json {
		return out.value(answer)
	}
	var message staged
	if err := json.Unmarshal(answer, &message); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	deliveries := "1 delivery"
	if message.Deliveries != 1 {
		deliveries = strconv.Itoa(message.Deliveries) + " deliveries"
	}
	out.printf("%s  %s  %s  %s\n", out.paint.green("staged"), clean(message.Type), clean(message.ID), deliveries)
	return nil
}

// payload reads what an argument names.
func (d Deps) payload(argument string) ([]byte, error) {
	var payload []byte
	var err error
	file, isFile := strings.CutPrefix(argument, "@")
	switch {
	case argument == "-":
		payload, err = bounded(d.In)
	case isFile:
		var opened *os.File
		if opened, err = os.Open(file); err == nil {
			payload, err = bounded(opened)
			_ = opened.Close()
		}
	default:
		return []byte(argument), nil
	}
	switch {
	case err != nil:
		return nil, &Failure{Code: ExitFailed, Sentence: "the payload cannot be read", Cause: err}
	case len(payload) > outbox.MaxPayload:
		return nil, &Failure{Code: ExitFailed, Sentence: fmt.Sprintf("the payload has more than %d MiB", outbox.MaxPayload>>20), Advice: "store it elsewhere and send its address"}
	}
	return payload, nil
}

// bounded reads no further than it takes to know that a payload is too large: an input may have no end.
func bounded(from io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(from, outbox.MaxPayload+1))
}

// withPayload writes the body of a message. JSON goes in as it is, since an encoder would change its bytes; the white space around it
// belongs to the payload too, and only base64 carries that.
func withPayload(message outgoing, payload []byte) (json.RawMessage, error) {
	media, _, err := mime.ParseMediaType(message.ContentType)
	if err != nil {
		return nil, misuse("write it like text/plain; charset=utf-8", "the content type is none")
	}
	isJSON := media == jsonType || strings.HasSuffix(media, "+json")
	if isJSON && !json.Valid(payload) {
		return nil, misuse("quote it for the shell, as in '{\"order\":1001}', or name its --content-type", "the payload is no JSON")
	}
	if message.ContentType == jsonType {
		message.ContentType = ""
	}
	head, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	field := []byte(`,"payload":`)
	if !isJSON || !utf8.Valid(payload) || len(strings.TrimSpace(string(payload))) != len(payload) {
		field = []byte(`,"payload_base64":`)
		if message.ContentType == "" {
			field = []byte(`,"content_type":"` + jsonType + `","payload_base64":`)
		}
		payload = []byte(`"` + base64.StdEncoding.EncodeToString(payload) + `"`)
	}
	return slices.Concat(head[:len(head)-1], field, payload, []byte{'}'}), nil
}

// moment reads a time: RFC 3339, or a duration from now; "" is none.
func moment(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	d, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
	if err != nil {
		return nil, misuse("write 2026-01-31T12:00:00+01:00, or 10m for in ten minutes", "%q is no time", text)
	}
	at := now.Add(d).UTC()
	return &at, nil
}
