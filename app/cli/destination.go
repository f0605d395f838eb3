package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v2"
)

// destinationsActCommand is pause or resume.
func destinationsActCommand(deps Deps, verb, usage string) *cli.Command {
	var own []cli.Flag
	if verb == "pause" {
		own = append(own, &cli.StringFlag{Name: "reason", Usage: "say `WHY`, for whoever looks next"})
	}
	return &cli.Command{
		Name:      verb,
		Usage:     usage,
		ArgsUsage: "NAME",
		Flags:     clientFlags(own...),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				return request{http.MethodPost, scoped(c, destinationPath(given[0])+"/"+verb), pauseReason(c, verb), done(verb+"d", given[0])}, nil
			})
		},
	}
}

// pauseReason is the body of a pause; nil without a reason, and for a resume.
func pauseReason(c *cli.Context, verb string) any {
	if reason := c.String("reason"); verb == "pause" && reason != "" {
		return map[string]string{"reason": reason}
	}
	return nil
}

// done says that something happened to something.
func done(what, to string) func(*terminal, json.RawMessage) error {
	return func(out *terminal, _ json.RawMessage) error {
		out.printf("%s  %s\n", out.paint.green(what), clean(to))
		return nil
	}
}

func destinationsDeleteCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "delete",
		Usage:       "Delete a destination",
		ArgsUsage:   "NAME",
		Description: "Its pending deliveries become dead letters of the class cancelled. It asks first, unless --yes is given.",
		Flags:       clientFlags(&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 1, func(given []string) (request, error) {
				question := fmt.Sprintf("Delete %s and cancel its pending deliveries?", given[0])
				return request{http.MethodDelete, scoped(c, destinationPath(given[0])), nil, showDeleted}, deps.confirm(c, question)
			})
		},
	}
}

func showDeleted(out *terminal, answer json.RawMessage) error {
	var deleted struct {
		Name      string `json:"name"`
		Cancelled int    `json:"cancelled"`
	}
	if err := json.Unmarshal(answer, &deleted); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	pending := strings.Replace(plural(deleted.Cancelled, "pending delivery"), "deliverys", "deliveries", 1)
	out.printf("%s  %s  %s cancelled\n", out.paint.green("deleted"), clean(deleted.Name), pending)
	return nil
}

// confirm asks the person at the terminal; where there is none, --yes must have been given.
func (d Deps) confirm(c *cli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	if !isTerminal(d.In) {
		return misuse("give --yes", "it asks before it does this, and the standard input is no terminal: %s", question)
	}
	fmt.Fprintf(d.Err, "%s [y/N] ", clean(question))
	answer, _ := bufio.NewReader(d.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &Failure{Code: ExitFailed, Sentence: "nothing was done"}
	}
	return nil
}

// showDestination prints a destination, whose rate of 0 is none.
func showDestination(out *terminal, answer json.RawMessage) error {
	fields, err := fieldsOf(answer)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	for i, field := range fields {
		switch {
		case field[0] == "rate" && field[1] == "0":
			fields[i][1] = "no limit"
		case field[0] == "rate":
			fields[i][1] += " a second"
		}
	}
	out.fields(fields)
	return nil
}

// showFields prints an object field by field, in the order in which the server wrote them.
func showFields(out *terminal, answer json.RawMessage) error {
	fields, err := fieldsOf(answer)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.fields(fields)
	return nil
}

func (t *terminal) fields(fields [][2]string) {
	width := 0
	for _, field := range fields {
		width = max(width, len(field[0]))
	}
	for _, field := range fields {
		t.printf("%-*s  %s\n", width, clean(field[0]), clean(field[1]))
	}
}

// fieldsOf lists the fields of an object as text, without those that are null or empty, and without the
// freshness: what a command shows was true when it was asked.
func fieldsOf(object json.RawMessage) ([][2]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var fields [][2]string
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		text := string(value)
		var list []string
		switch {
		case json.Unmarshal(value, &list) == nil:
			text = strings.Join(list, ", ")
		default:
			var word string
			if json.Unmarshal(value, &word) == nil {
				text = word
			}
		}
		if label := strings.ReplaceAll(fmt.Sprint(name), "_", " "); text != "" && text != "null" && label != "freshness" {
			fields = append(fields, [2]string{label, text})
		}
	}
	return fields, nil
}
