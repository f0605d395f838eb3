package api

import (
	"errors"
	"net/http"

	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// health says that the process serves.
type health struct {
	Status string `json:"status" enum:"ok"`
}

// readiness says whether messages are dispatched.
type readiness struct {
	Status  string   `json:"status" enum:"ready,degraded,gated" doc:"degraded: messages are dispatched, and somebody should look; gated: none is"`
	Reasons []reason `json:"reasons" doc:"why it is not ready"`
}

// reason is why it is not ready, in words that hold nothing private: nobody has to be known to read them.
type reason struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Runbook is the record that says what to do.
	Runbook string `json:"runbook,omitempty" doc:"the runbook that says what to do"`
}

var gates = []struct {
	err error
	reason
}{
	{outbox.ErrStoreBusy, reason{"store-busy", "Another process holds the database.", "store-outage"}},
	{outbox.ErrStoreFull, reason{"store-full", "The disk, or the database's size limit, has no room.", "disk-full"}},
	{outbox.ErrStoreIO, reason{"store-unavailable", "The database cannot be read or written.", "store-outage"}},
	{outbox.ErrInDoubt, reason{"in-doubt", "A commit failed in a way that leaves open whether it happened; the process ends.", "store-outage"}},
	{outbox.ErrCorrupt, reason{"store-damaged", "The database file is damaged.", "restore"}},
	{store.ErrReplaced, reason{"store-replaced", "The database file was removed or replaced; the process ends.", "store-outage"}},
	{outbox.ErrClosed, reason{"stopping", "The process is stopping.", ""}},
}

func reasonOf(err error) reason {
	for _, g := range gates {
		if errors.Is(err, g.err) {
			return g.reason
		}
	}
	return reason{"store-unavailable", "The store cannot be used; the log says why.", "store-outage"}
}

func (s *server) healthRoutes() {
	add[nothing, health](s, operation{method: http.MethodGet, path: "/healthz", tag: "about", summary: "Whether the process serves", public: true},
		func(*exchange, nothing) (reply, error) { return reply{http.StatusOK, health{"ok"}}, nil })
	add[nothing, readiness](s, operation{
		method: http.MethodGet, path: "/readyz", tag: "about", summary: "Whether messages are dispatched", public: true, also: []int{http.StatusServiceUnavailable},
		description: "503 exactly when dispatch is gated; 200 otherwise, also when it is degraded. With the reasons.",
	}, func(*exchange, nothing) (reply, error) {
		ready := readiness{Status: "ready", Reasons: []reason{}}
		if err := s.Writer.Err(); err != nil {
			ready.Reasons = append(ready.Reasons, reasonOf(err))
		} else if err := s.Dispatcher.Down(); err != nil {
			ready.Reasons = append(ready.Reasons, reasonOf(err))
		}
		if len(ready.Reasons) > 0 {
			ready.Status = "gated"
			return reply{http.StatusServiceUnavailable, ready}, nil
		}
		if ready.Reasons = s.troubles(); len(ready.Reasons) > 0 {
			ready.Status = "degraded"
		}
		return reply{http.StatusOK, ready}, nil
	})
}

// troubles lists what leaves dispatch going and wants looking at.
func (s *server) troubles() []reason {
	found := []reason{}
	if s.Intake() != nil {
		found = append(found, reason{"disk-low", "The disk is nearly full: nothing new is accepted, deliveries go on.", "disk-full"})
	}
	if s.Incomplete() {
		found = append(found, reason{"outbox-incomplete", "The outbox in the application's database lacks something of its contract: what is staged there may not be delivered.", "outbox-incomplete"})
	}
	if !s.Dispatcher.ClockTrusted() {
		found = append(found, reason{"clock-untrusted", "The clock shows a time before this program was built: what needs it is held.", "clock-untrusted"})
	}
	if s.Alerts != nil && len(s.Alerts.Raised()) > 0 {
		found = append(found, reason{"alerts", "Alerts are raised; posthorn alerts list shows them.", ""})
	}
	return found
}
