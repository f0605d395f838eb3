package cli

import (
	"io"
	"strings"
)

// palette paints text for a terminal, or leaves it alone. Every code has the same length, so that painted cells stay aligned.
type palette struct{ on bool }

// paletteFor paints on a terminal only, and not when NO_COLOR is set or the terminal is dumb.
func paletteFor(to io.Writer, getenv func(string) string) palette {
	return palette{on: isTerminal(to) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (p palette) code(code, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[00m"
}

func (p palette) plain(text string) string  { return p.code("00", text) }
func (p palette) dim(text string) string    { return p.code("02", text) }
func (p palette) red(text string) string    { return p.code("31", text) }
func (p palette) green(text string) string  { return p.code("32", text) }
func (p palette) yellow(text string) string { return p.code("33", text) }
func (p palette) cyan(text string) string   { return p.code("36", text) }

func (p palette) painted(text string) bool { return p.on && strings.HasPrefix(text, "\x1b[") }

// state paints the state of a delivery. The word stands there as well: colour is never alone.
func (p palette) state(state string) string {
	state = clean(state)
	switch state {
	case "dispatched", "flowing":
		return p.green(state)
	case "dead-letter", "disabled":
		return p.red(state)
	case "processing":
		return p.cyan(state)
	case "paused":
		return p.yellow(state)
	default:
		return p.plain(state)
	}
}
