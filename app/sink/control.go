package sink

import (
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"strings"
)

const controlPath = "/_sink/"

func isControl(path string) bool { return strings.HasPrefix(path, controlPath) }

// Stats are a sink's counters since it started.
type Stats struct {
	Requests   int64            `json:"requests"`
	Handled    int64            `json:"handled"`
	Repeated   int64            `json:"repeated"`    // suppressed
	NotHandled int64            `json:"not_handled"` // refused by a misbehaviour before they were handled
	Refused    int64            `json:"refused"`     // unverified, too long, broken off
	Verified   int64            `json:"verified"`
	Changed    int64            `json:"changed"`
	Stale      int64            `json:"stale"`
	Misbehaved int64            `json:"misbehaved"`
	Statuses   map[string]int64 `json:"statuses"` // by status answered; "none" for resets
}

func (s *Stats) count(entry Entry) {
	s.Requests++
	switch {
	case entry.Problem != "":
		s.Refused++
	case entry.Repeated:
		s.Repeated++
	case entry.Handled:
		s.Handled++
	default:
		s.NotHandled++
	}
	add(&s.Verified, entry.Verified)
	add(&s.Changed, entry.Changed)
	add(&s.Stale, entry.Stale)
	add(&s.Misbehaved, entry.Misbehaviour != "")
	status := "none"
	if entry.Status != 0 {
		status = entry.status()
	}
	s.Statuses[status]++
}

func add(counter *int64, happened bool) {
	if happened {
		*counter++
	}
}

// Stats returns the counters.
func (s *Sink) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Statuses = maps.Clone(stats.Statuses)
	return stats
}

// controlHandler serves /_sink/. It has no credentials, as a test receiver on loopback needs none, but no web page may use it:
// cross-origin requests are refused, and JSON is the only content type taken.
func (s *Sink) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+controlPath+"stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) })
	mux.HandleFunc("GET "+controlPath+"misbehave", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.inForce()) })
	mux.HandleFunc("POST "+controlPath+"misbehave", func(w http.ResponseWriter, r *http.Request) {
		if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
			http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
			return
		}
		m, err := readMisbehaviour(http.MaxBytesReader(w, r.Body, 16<<10))
		if err == nil {
			err = s.Misbehave(m)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, s.inForce())
	})
	return http.NewCrossOriginProtection().Handler(mux)
}

func (s *Sink) inForce() Misbehaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misbehaviour
}

func writeJSON(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n'))
}
