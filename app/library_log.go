package app

import (
	"log"
	"log/slog"
	"strings"
)

// libraryLog takes what libraries write to the standard library's own logger. net/http writes there what a target sent unasked, which may
// repeat a payload: that part is left out.
type libraryLog struct{ logger *slog.Logger }

// Write logs one line.
func (l libraryLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(line)), " starting with ")
	l.logger.Debug("a library says", "text", text)
	return len(line), nil
}

// tameLibraries makes the standard library's logger, which is one for the whole process, a part of the process's log.
func tameLibraries(logger *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(libraryLog{logger})
}
