package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
)

// terminal is where a command writes its result.
type terminal struct {
	out   io.Writer
	json  bool
	now   time.Time
	paint palette
	// live says that a person is looking on.
	live bool
}

func (d Deps) terminal(c *cli.Context) *terminal {
	return &terminal{
		out: d.Out, json: c.Bool("json"), now: d.Now(), paint: paletteFor(d.Out, d.Getenv), live: isTerminal(d.Out),
	}
}

// value prints a JSON value on a line of its own, byte for byte as the server wrote it but for white space; a person gets it indented.
func (t *terminal) value(text json.RawMessage) error {
	var out bytes.Buffer
	var err error
	if t.live {
		err = json.Indent(&out, text, "", "  ")
	} else {
		err = json.Compact(&out, text)
	}
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	out.WriteByte('\n')
	_, err = out.WriteTo(t.out)
	return err
}

// encode prints a Go value as JSON.
func (t *terminal) encode(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return t.value(text)
}

// printf prints for a person; what came from elsewhere must be cleaned before.
func (t *terminal) printf(format string, values ...any) { fmt.Fprintf(t.out, format, values...) }

// table collects rows of cells and prints them aligned.
type table struct {
	to   *terminal
	tabs *tabwriter.Writer
}

func (t *terminal) table(header ...string) *table {
	table := &table{to: t, tabs: tabwriter.NewWriter(t.out, 0, 8, 2, ' ', tabwriter.StripEscape)}
	table.cells(header, t.paint.dim)
	return table
}

// row adds a row. A cell made by a palette keeps its colour.
func (t *table) row(cells ...string) { t.cells(cells, t.to.paint.plain) }

func (t *table) cells(cells []string, paint func(string) string) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.tabs, "\t")
		}
		if cell == "" {
			cell = "-"
		}
		// Every cell of a coloured table is painted, in codes of one length, since the tab writer counts them as text.
		if !t.to.paint.painted(cell) {
			cell = paint(clean(cell))
		}
		fmt.Fprint(t.tabs, cell)
	}
	fmt.Fprint(t.tabs, "\n")
}

// end prints the table.
func (t *table) end() error { return t.tabs.Flush() }

// clock writes a time for a person: local, to the second, with its zone; the day only when it is not today.
func (t *terminal) clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	local, now := at.In(t.now.Location()), t.now
	if local.Year() == now.Year() && local.YearDay() == now.YearDay() {
		return local.Format("15:04:05 MST")
	}
	return local.Format("2006-01-02 15:04 MST")
}

// until writes how far away a time is.
func (t *terminal) until(at time.Time) string {
	switch d := at.Sub(t.now); {
	case at.IsZero():
		return ""
	case d > 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// span writes a duration in its largest unit that keeps two digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

func isTerminal(to any) bool {
	file, ok := to.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
