package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// banner is what a demo says once, at its start.
type banner struct {
	URL      string `json:"url"`
	DataDir  string `json:"data_dir"`
	Token    string `json:"token_file"`
	Receiver string `json:"receiver"`
	Journal  string `json:"journal"`
	Log      string `json:"log"`
	PID      int    `json:"pid"`
	Version  string `json:"version"`
	// Link signs a browser in, once.
	Link    string `json:"link"`
	program string
}

// called is how a shell in the current folder calls a program.
func called(executable string) string {
	if found, err := exec.LookPath(filepath.Base(executable)); err == nil && found == executable {
		return filepath.Base(executable)
	}
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(here, executable); err == nil && filepath.IsLocal(below) {
			return quote("./" + below)
		}
	}
	return quote(executable)
}

// curl is the quick start of the README: one transaction that changes a document and emits an event.
func (b banner) curl() string {
	return fmt.Sprintf(`curl %s/v1/transactions -H "Authorization: Bearer $(cat %s)" -H 'Content-Type: application/json' -d '{
  "changes": [{"op": "put", "collection": "orders", "id": "1001", "body": {"item": "post horn", "paid": true}}],
  "emits":   [{"type": "order-placed", "payload": {"order": 1001}, "ordering_key": "orders/1001"}]}'`, b.URL, quote(b.Token))
}

// hello prints the banner.
func (s *screen) hello(b banner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		s.print(event{Event: "started", PID: b.PID, Start: &b})
		return
	}
	title := s.paint("1", "Posthorn demo")
	fmt.Fprintf(s.out, "\n%s  %s\n\n", title, b.Version)
	for _, row := range [][2]string{
		{"open", s.paint("1", b.Link) + "  (signs your browser in, once)"},
		{"API", b.URL},
		{"data", b.DataDir + "  (delete it to start afresh)"},
		{"receiver", b.Receiver + "  (keeps its journal in " + b.Journal + ")"},
		{"process", fmt.Sprintf("%d  (logs to %s)", b.PID, b.Log)},
	} {
		fmt.Fprintf(s.out, "  %s  %s\n", s.paint("2", fmt.Sprintf("%-8s", row[0])), row[1])
	}
	fmt.Fprintf(s.out, "\nPost something: one transaction changes a document and emits an event. Watch for order-placed below.\n\n%s\n", indent(b.curl()))
	fmt.Fprintf(s.out, "\nThen pull the plug. It starts again, and nothing is lost:\n\n%s\n", indent(fmt.Sprintf("kill -9 %d", b.PID)))
	dir := quote(b.DataDir)
	fmt.Fprintf(s.out, "\nLook around:\n\n%s\n", indent(b.program+" backlog --data-dir "+dir+"\n"+b.program+" messages list --data-dir "+dir))
	fmt.Fprintf(s.out, "\nThe receiver misbehaves a little on purpose. Ctrl-C ends the demo.\n\n")
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// quote makes a path one word of a shell.
func quote(path string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@", r)
	}
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return !safe(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
