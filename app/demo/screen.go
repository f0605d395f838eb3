package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/app/sink"
)

// remembered is of how many messages the screen knows that they were staged.
const remembered = 10_000

// screen prints a line for each event, in the order in which the supervisor learns of them.
type screen struct {
	out   io.Writer
	json  bool
	color bool
	now   func() time.Time

	mu      sync.Mutex
	known   map[string]bool
	order   []string // of known, a ring once it is full
	next    int
	count   counts
	changed bool // since the last summary
}

// counts are of this run.
type counts struct {
	Staged    int64 `json:"staged"`
	Delivered int64 `json:"delivered"`
	Failing   int64 `json:"failing"`
	Retried   int64 `json:"retried"`
	Restarts  int64 `json:"restarts"`
}

func newScreen(config Config) *screen {
	return &screen{out: config.Out, json: config.JSON, color: config.Color, now: config.Now, known: map[string]bool{}}
}

// event is what a line says.
type event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Type    string    `json:"type,omitempty"`
	ID      string    `json:"id,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Note    string    `json:"note,omitempty"`
	Counts  *counts   `json:"counts,omitempty"`
	Backlog *backlog  `json:"backlog,omitempty"`
	Start   *banner   `json:"start,omitempty"`
}

// paints are the colours of the events; the word stands there as well.
var paints = map[string]string{
	"staged": "36", "delivered": "32", "failing": "31", "refused": "31", "retried": "33", "repeated": "33", "ended": "31", "ready": "32",
}

func (s *screen) print(e event) {
	e.Time = s.now()
	if s.json {
		e.Time = e.Time.UTC()
		text, _ := json.Marshal(e) // of plain fields
		_, _ = s.out.Write(append(text, '\n'))
		return
	}
	attempt := ""
	if e.Attempt > 0 {
		attempt = fmt.Sprintf("attempt %d", e.Attempt)
	}
	line := fmt.Sprintf("%s  %-18s  %-36s  %-10s  %s", s.paint(paints[e.Event], fmt.Sprintf("%-9s", e.Event)),
		plain(e.Type), plain(e.ID), attempt, e.Note)
	if e.Type == "" {
		line = fmt.Sprintf("%s  %s", s.paint(paints[e.Event], fmt.Sprintf("%-9s", e.Event)), e.Note)
	}
	fmt.Fprintf(s.out, "%s  %s\n", s.paint("2", e.Time.Format("15:04:05")), strings.TrimRight(line, " "))
}

// staged says that a message was committed. What the receiver sees of a message before is as good a proof.
func (s *screen) staged(id, eventType string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meet(id, eventType)
}

func (s *screen) meet(id, eventType string) {
	if s.known[id] {
		return
	}
	s.known[id] = true
	if len(s.order) < remembered {
		s.order = append(s.order, id)
	} else {
		delete(s.known, s.order[s.next])
		s.order[s.next] = id
		s.next = (s.next + 1) % remembered
	}
	s.count.Staged++
	s.changed = true
	s.print(event{Event: "staged", Type: eventType, ID: id})
}

// arrived says what the receiver did with an attempt.
func (s *screen) arrived(e sink.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	line := event{Type: e.Type, ID: e.ID, Attempt: e.Attempt}
	if e.Problem != "" {
		line.Event, line.Note = "refused", e.Problem
		s.print(line)
		return
	}
	s.meet(e.ID, e.Type)
	if e.Attempt > 1 {
		s.count.Retried++
		line.Event = "retried"
		s.print(line)
	}
	line.Event, line.Note = "delivered", e.Misbehaviour
	switch {
	case e.Status < 200 || e.Status > 299:
		s.count.Failing++
		line.Event, line.Note = "failing", fmt.Sprintf("answered %d", e.Status)
		if e.Handled {
			line.Note += ", but handled: it will come again"
		}
	case e.Repeated:
		s.count.Delivered++
		line.Note = "handled before: the repeat is suppressed"
	default:
		s.count.Delivered++
	}
	s.print(line)
}

// refused says that the API refused a sample transaction.
func (s *screen) refused(eventType string, problem *client.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(event{Event: "refused", Type: eventType, Note: fmt.Sprintf("%d %s: %s", problem.Status, problem.Code, plain(problem.Error()))})
}

// died says that the process ended, and when the next one starts.
func (s *screen) died(pid int, how string, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Restarts++
	s.changed = true
	s.print(event{Event: "ended", PID: pid, Note: fmt.Sprintf("process %d: %s; starts again in %s", pid, how, again)})
}

// running says that a process answers requests.
func (s *screen) running(said ready) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(event{Event: "ready", PID: said.PID, Note: fmt.Sprintf("process %d answers on %s", said.PID, said.URL)})
}

// trouble says that something did not work and is tried again.
func (s *screen) trouble(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(event{Event: "waiting", Note: plain(what)})
}

// backlog is what the appliance says of its backlog.
type backlog struct {
	Pending int64 `json:"pending"`
	Failed  int64 `json:"failed"`
}

// summary sums up, unless nothing happened since the last time.
func (s *screen) summary(now *backlog, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed && !last {
		return
	}
	s.changed = false
	count := s.count
	note := fmt.Sprintf("%d staged · %d delivered · %d failing · %d retried", count.Staged, count.Delivered, count.Failing, count.Retried)
	if now != nil {
		note += fmt.Sprintf(" · %d pending · %s", now.Pending, plural(now.Failed, "dead letter"))
	}
	if count.Restarts > 0 {
		note += " · " + plural(count.Restarts, "restart")
	}
	if s.json {
		s.print(event{Event: "summary", Counts: &count, Backlog: now})
		return
	}
	fmt.Fprintf(s.out, "%s\n", s.paint("1", s.now().Format("15:04:05")+"  ── "+note))
}

func (s *screen) paint(code, text string) string {
	if !s.color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// plain shows what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return '\uFFFD'
		}
		return r
	}, text)
}
