package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

func lendingCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "lending",
		Usage:       "Work at the desk of the lending branch",
		Description: "The branch is on in a demo, and where posthorn.yaml says lending: true.",
		Subcommands: []*cli.Command{
			lendingActCommand(deps, "borrow", "MEMBER COPY", "Lend a copy to a member", func(given []string) (string, any) {
				return "/v1/lending/loans", map[string]string{"member": given[0], "copy": given[1]}
			}, showLoan),
			lendingActCommand(deps, "return", "COPY", "Take a copy back", func(given []string) (string, any) {
				return "/v1/lending/returns", map[string]string{"copy": given[0]}
			}, showLoan),
			lendingActCommand(deps, "renew", "LOAN", "Renew a loan", func(given []string) (string, any) {
				return "/v1/lending/loans/" + url.PathEscape(given[0]) + "/renew", nil
			}, showLoan),
			lendingActCommand(deps, "reserve", "MEMBER WORK", "Put a member into the queue of a work", func(given []string) (string, any) {
				return "/v1/lending/reservations", map[string]string{"member": given[0], "work": given[1]}
			}, showReservation),
			lendingActCommand(deps, "refresh-shelf", "", "Count anew what was borrowed most", func([]string) (string, any) {
				return "/v1/lending/popular-shelf/refresh", nil
			}, showShelf),
			lendingLoansCommand(deps),
		},
	}
}

// loan is a loan as the API shows it.
type loan struct {
	ID       string `json:"id"`
	Member   string `json:"member"`
	Copy     string `json:"copy"`
	Title    string `json:"title"`
	DueAt    string `json:"due_at"`
	Returned string `json:"returned_at"`
	Overdue  bool   `json:"overdue"`
}

// lendingActCommand is a command whose arguments are all that it sends.
func lendingActCommand(deps Deps, name, wants, usage string, of func([]string) (string, any), show func(*terminal, json.RawMessage) error) *cli.Command {
	count := 0
	for _, r := range wants {
		if r == ' ' {
			count++
		}
	}
	if wants != "" {
		count++
	}
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: wants, Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, count, func(given []string) (request, error) {
				path, body := of(given)
				return request{http.MethodPost, scoped(c, path), body, show}, nil
			})
		},
	}
}

func lendingLoansCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name: "loans", Usage: "List the open loans, the one that is due first, first", Flags: clientFlags(),
		Action: func(c *cli.Context) error {
			return deps.ask(c, 0, func([]string) (request, error) {
				return request{http.MethodGet, scoped(c, "/v1/lending/loans"), nil, showLoans}, nil
			})
		},
	}
}

func showLoan(out *terminal, answer json.RawMessage) error {
	var l loan
	if err := json.Unmarshal(answer, &l); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return showLoanRows(out, []loan{l})
}

func showLoans(out *terminal, answer json.RawMessage) error {
	var page struct {
		Loans []loan `json:"loans"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return showLoanRows(out, page.Loans)
}

func showLoanRows(out *terminal, loans []loan) error {
	table := out.table("LOAN", "COPY", "TITLE", "MEMBER", "DUE", "STATE")
	for _, l := range loans {
		state := out.paint.plain("on loan")
		switch {
		case l.Returned != "":
			state = out.paint.plain("returned")
		case l.Overdue:
			state = out.paint.red("overdue")
		}
		due, _, _ := strings.Cut(l.DueAt, "T")
		table.row(l.ID, l.Copy, l.Title, l.Member, due, state)
	}
	return table.end()
}

func showReservation(out *terminal, answer json.RawMessage) error {
	var r struct {
		ID, Member, Title, State string
		Position                 struct{ Number int }
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	table := out.table("RESERVATION", "TITLE", "MEMBER", "STATE", "PLACE")
	table.row(r.ID, r.Title, r.Member, r.State, strconv.Itoa(r.Position.Number))
	return table.end()
}

func showShelf(out *terminal, answer json.RawMessage) error {
	var shelf struct {
		Works []struct {
			Place, Loans int
			Work, Title  string
		}
	}
	if err := json.Unmarshal(answer, &shelf); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	table := out.table("PLACE", "WORK", "TITLE", "LOANS")
	for _, w := range shelf.Works {
		table.row(strconv.Itoa(w.Place), w.Work, w.Title, strconv.Itoa(w.Loans))
	}
	return table.end()
}
