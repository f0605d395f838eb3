package ui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// stream is a scripted event stream. It remembers what it sent, answers Last-Event-ID from that, and can be cut and silenced.
type stream struct {
	mu        sync.Mutex
	epoch     int
	seq       int
	history   []sent
	open      map[chan string]*listener
	down      bool // connections are closed at once, as by a server that is not there
	deaf      bool // connections stand, but nothing arrives: the machine between has gone
	refusal   int  // a status instead of a stream
	accepted  int
	refused   int
	cursors   []string
	heartbeat time.Duration
}

type sent struct {
	seq   int
	topic string
	data  string
}

type listener struct {
	topics []string
	end    chan struct{}
}

func newStream() *stream {
	return &stream{epoch: 1, open: map[chan string]*listener{}, heartbeat: 15 * time.Second}
}

func (s *stream) id() string { return fmt.Sprintf("e%d-%d", s.epoch, s.seq) }

func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.down {
		s.refused++
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	if s.refusal != 0 {
		s.refused++
		status := s.refusal
		s.mu.Unlock()
		refuse(w, status, "refused", "No.", "")
		return
	}
	s.accepted++
	events := make(chan string, 1000)
	l := &listener{topics: r.URL.Query()["topic"], end: make(chan struct{})}
	s.open[events] = l
	cursor := r.Header.Get("Last-Event-ID")
	s.cursors = append(s.cursors, cursor)
	s.greet(events, l, cursor)
	heartbeat := s.heartbeat
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, events)
		s.mu.Unlock()
	}()

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w).Flush
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	lost := false
	for {
		text := ": heartbeat\n\n"
		select {
		case <-r.Context().Done():
			return
		case <-l.end:
			panic(http.ErrAbortHandler) // the connection breaks in the middle of a chunk
		case text = <-events:
		case <-beat.C:
		}
		s.mu.Lock()
		deaf := s.deaf
		s.mu.Unlock()
		if lost = lost || deaf; deaf {
			continue
		}
		if lost {
			panic(http.ErrAbortHandler) // what went by unheard is not made up for on the same connection
		}
		if _, err := w.Write([]byte(text)); err != nil || flush() != nil || strings.HasPrefix(text, "event: bye") {
			return
		}
	}
}

// greet says hello and what was missed, as the endpoint does.
func (s *stream) greet(events chan string, l *listener, cursor string) {
	var epoch, seq int
	known, _ := fmt.Sscanf(cursor, "e%d-%d", &epoch, &seq)
	resumed := known == 2 && epoch == s.epoch
	events <- fmt.Sprintf("retry: 200\nid: %s\nevent: hello\ndata: {\"epoch\":\"e%d\",\"heartbeat_ms\":%d,\"life_span_ms\":3600000,\"resumed\":%t}\n\n",
		s.id(), s.epoch, s.heartbeat.Milliseconds(), resumed)
	switch {
	case resumed:
		for _, h := range s.history {
			if h.seq > seq && slices.Contains(l.topics, h.topic) {
				events <- fmt.Sprintf("id: e%d-%d\nevent: notification\ndata: %s\n\n", s.epoch, h.seq, h.data)
			}
		}
	case cursor != "":
		events <- fmt.Sprintf("id: %s\nevent: reset\ndata: {\"reason\":\"epoch\"}\n\n", s.id())
	}
}

// notify tells of a change; version 0 is none.
func (s *stream) notify(topic, resource string, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	data := fmt.Sprintf(`{"topic":%q,"resource":%q,"version":%d,"change":"updated","freshness":{"mode":"immediate"}}`, topic, resource, version)
	s.history = append(s.history, sent{s.seq, topic, data})
	s.send(topic, fmt.Sprintf("id: %s\nevent: notification\ndata: %s\n\n", s.id(), data))
}

// send writes raw text to those who listen to a topic; "" is everybody.
func (s *stream) send(topic, text string) {
	for events, l := range s.open {
		if topic == "" || slices.Contains(l.topics, topic) {
			events <- text
		}
	}
}

// cut breaks every connection.
func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for events, l := range s.open {
		close(l.end)
		delete(s.open, events)
	}
}

// bye ends every connection as the endpoint does, with a reason.
func (s *stream) bye(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send("", fmt.Sprintf("event: bye\ndata: {\"reason\":%q}\n\n", reason))
}

// stop takes the server away; start brings it back, restart with a new epoch and without a history.
func (s *stream) stop() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.cut()
}

func (s *stream) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

func (s *stream) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.seq, s.history = false, 0, nil
	s.epoch++
}

// set changes how the stream behaves.
func (s *stream) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// counts is how many connections stand, were accepted and were refused.
func (s *stream) counts() (open, accepted, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.accepted, s.refused
}

// topics is what is listened to, over all connections.
func (s *stream) topics() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, l := range s.open {
		all = append(all, l.topics...)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
