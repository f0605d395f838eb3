package sink

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Entry is one delivery as the sink saw it: a line of the journal.
type Entry struct {
	Time          time.Time `json:"time"`
	Path          string    `json:"path"`
	ID            string    `json:"id"`
	Type          string    `json:"type"`
	SchemaVersion int       `json:"schema_version"`
	Attempt       int       `json:"attempt"`
	Fence         int64     `json:"fence"`
	Bytes         int       `json:"bytes"`
	SHA256        string    `json:"sha256"`
	Verified      bool      `json:"verified"`          // the signature and its time are right; false without secrets
	Problem       string    `json:"problem,omitempty"` // why it was refused
	Handled       bool      `json:"handled"`           // handled now, for the first time
	Repeated      bool      `json:"repeated"`          // handled before, and suppressed now
	Changed       bool      `json:"changed,omitempty"` // other bytes than this message had before: the sender's fault
	Stale         bool      `json:"stale,omitempty"`   // its fence is below one seen for this message: a late worker's
	Misbehaviour  string    `json:"misbehaviour,omitempty"`
	Status        int       `json:"status"` // the status answered; 0 when none was
}

// Line is the entry for a person to read. What the sender chose is quoted where a terminal could take it for a command.
func (e Entry) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  %s  attempt %d  fence %d  %d bytes  ",
		e.Time.Format("15:04:05.000"), e.status(), plain(e.Type), plain(e.ID), e.Attempt, e.Fence, e.Bytes)
	switch {
	case e.Problem != "":
		b.WriteString("refused: " + e.Problem)
	case e.Repeated:
		b.WriteString("repeat, suppressed")
	case e.Handled:
		b.WriteString("handled")
	default:
		b.WriteString("not handled")
	}
	if e.Changed {
		b.WriteString("; its bytes changed")
	}
	if e.Stale {
		b.WriteString("; its fence is stale")
	}
	if e.Misbehaviour != "" {
		b.WriteString("  [" + e.Misbehaviour + "]")
	}
	return b.String()
}

func (e Entry) status() string {
	if e.Status == 0 {
		return "---"
	}
	return strconv.Itoa(e.Status)
}

func plain(s string) string {
	if s == "" {
		return "-"
	}
	if len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }) {
		return strconv.QuoteToASCII(s[:min(len(s), 200)])
	}
	return s
}
