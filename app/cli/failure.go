package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit codes of the program. Errors carry their own by a method ExitCode.
const (
	ExitOK        = 0
	ExitFailed    = 1  // refused, or not reached
	ExitUsage     = 2  // the command line is wrong
	ExitStorage   = 70 // the storage failed, or a commit is in doubt
	ExitHeld      = 73 // another process holds the data folder
	ExitNewer     = 74 // the database has a newer schema
	ExitIntegrity = 75 // the database is damaged, or lost its tail
	ExitInterrupt = 130
)

// Failure ends a command with a sentence, a hint and an exit code.
type Failure struct {
	Code     int
	Sentence string
	Advice   string
	Cause    error
}

// Error is the sentence, with its cause.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return f.Sentence
	}
	return f.Sentence + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// ExitCode is the code that the program exits with.
func (f *Failure) ExitCode() int { return f.Code }

// Hint says what to do.
func (f *Failure) Hint() string { return f.Advice }

// misuse is a command line that is wrong.
func misuse(hint, format string, values ...any) error {
	return &Failure{Code: ExitUsage, Sentence: fmt.Sprintf(format, values...), Advice: hint}
}

// exitCode finds the code of an error.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &coded) && coded.ExitCode() != 0:
		return coded.ExitCode()
	case errors.Is(err, context.Canceled):
		return ExitInterrupt
	default:
		return ExitFailed
	}
}

// report prints an error for a person: a sentence, and what to do.
func report(to io.Writer, err error, paint palette) {
	if errors.Is(err, context.Canceled) {
		return // whoever pressed Ctrl-C knows
	}
	fmt.Fprintf(to, "%s %s\n", paint.red("error:"), clean(err.Error()))
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintf(to, "%s  %s\n", paint.cyan("hint:"), clean(hinted.Hint()))
	}
}

// clean makes foreign text safe for a terminal: control characters but the line feed are shown, not obeyed.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && !bidi(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}

// bidi says that a rune reorders what stands around it.
func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}
