package cli

import "fmt"

// progress is one line that says how far a long work is, for a person who looks on; for anybody else it is silent.
type progress struct {
	deps  Deps
	live  bool
	shown bool
}

func (d Deps) progress() *progress { return &progress{deps: d, live: isTerminal(d.Err)} }

// say puts a line in the place of the one before it.
func (p *progress) say(format string, values ...any) {
	if p.live {
		p.shown = true
		fmt.Fprintf(p.deps.Err, "\r\x1b[K"+format, values...)
	}
}

// end takes the line away.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.deps.Err, "\r\x1b[K")
	}
}
