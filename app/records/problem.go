package records

import (
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with the records, for a person to mend.
type Problem struct {
	File string // as the overlay or the built-in folder names it, "settings/retry-cap.md"
	Line int    // 0 where the whole file is meant
	Text string // what is wrong
	Hint string // what to do, or ""
}

// String is the problem in one line: "file:line: what is wrong; what to do".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	b.WriteString(": " + p.Text)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Problems is the error of Load, Override and Check: everything that they found, not only the first.
type Problems []Problem

// Error has one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// orNil keeps an empty list from becoming an error that is not nil.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
