package app

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
)

// TestOperatorsSeeAndCloseStreams: an admin sees who listens, to what and since when, in the own tenant only, and closes a user's streams: that is
// audited, and counted by its reason, in the metrics too.
func TestOperatorsSeeAndCloseStreams(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, "")
	_, admin := s.token(access.NewToken{Role: access.Admin, Name: "chief"})
	_, viewer := s.token(access.NewToken{Role: access.Viewer, Name: "kiosk"})
	_, theirs := s.token(access.NewToken{Role: access.Admin, Tenant: "other"})
	ask := func(method, path, token, body string, into any) int {
		t.Helper()
		answer := s.do(method, path, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
		text, _ := io.ReadAll(answer.Body)
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatalf("%s %s: %s: %s", method, path, answer.Status, text)
			}
		}
		return answer.StatusCode
	}
	one, two := s.listenTo(viewer, "topic=messages/1&topic=backlog"), s.listenTo(viewer, "topic=backlog")
	other, mine := s.listenTo(theirs, "topic=backlog"), s.listenTo(admin, "topic=backlog")
	s.tell("1")
	eventually(t, "the notification", func() bool { return one.version("messages/1") == 1 })
	var list connectionsSeen
	if status := ask(http.MethodGet, "/v1/connections", admin, "", &list); status != http.StatusOK || list.Total != 4 || len(list.Connections) != 3 {
		t.Fatalf("%d: %+v", status, list)
	}
	first := list.Connections[0]
	if first.User != "main/token:kiosk" || first.By != "token" || first.Role != "viewer" || strings.Join(first.Topics, " ") != "backlog messages/1" || first.Delivered != 1 ||
		time.Since(first.Since) > time.Hour || first.Remote == "" || len(first.ID) != 32 {
		t.Errorf("the first: %+v", first)
	}
	for name, token := range map[string]string{"a viewer": viewer} {
		if status := ask(http.MethodGet, "/v1/connections", token, "", nil); status != http.StatusForbidden {
			t.Errorf("%s sees who listens: %d", name, status)
		}
		if status := ask(http.MethodPost, "/v1/connections/disconnect", token, `{"user":"main/token:chief"}`, nil); status != http.StatusForbidden {
			t.Errorf("%s disconnects others: %d", name, status)
		}
	}
	var done struct{ Closed int }
	if status := ask(http.MethodPost, "/v1/connections/disconnect", theirs, `{"user":"main/token:kiosk"}`, &done); status != http.StatusOK || done.Closed != 0 {
		t.Errorf("another tenant's admin closed %d streams: %d", done.Closed, status)
	}
	for _, body := range []string{`{}`, `{"id":"x","user":"y"}`} {
		if status := ask(http.MethodPost, "/v1/connections/disconnect", admin, body, nil); status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
			t.Errorf("%s is answered %d", body, status)
		}
	}
	if status := ask(http.MethodPost, "/v1/connections/disconnect", admin, `{"user":"main/token:kiosk","reason":"the shop closes"}`, &done); status != http.StatusOK || done.Closed != 2 {
		t.Errorf("closed %d streams, want 2: %d", done.Closed, status)
	}
	eventually(t, "the end of both", func() bool { return one.over() && two.over() })
	s.connections(2)
	if mine.over() || other.over() {
		t.Error("somebody else was disconnected")
	}
	var trail struct {
		Entries []struct{ Action, Subject, Detail, Actor string }
	}
	ask(http.MethodGet, "/v1/audit?limit=5", admin, "", &trail)
	if len(trail.Entries) == 0 || trail.Entries[0].Action != "connection.close" || trail.Entries[0].Subject != "main/token:kiosk" || trail.Entries[0].Detail != "the shop closes" {
		t.Errorf("the audit says %+v", trail.Entries)
	}
	answer := s.do(http.MethodGet, "/metrics", "", "Authorization", "Bearer "+viewer)
	text, _ := io.ReadAll(answer.Body)
	for _, line := range []string{"live_connections 2", `live_closed_total{reason="disconnected"} 2`, "live_delivered_total ", "live_coalesced_total ", "live_lag_seconds 0"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the metrics lack %q", line)
		}
	}
	// By its id alone.
	list = connectionsSeen{}
	ask(http.MethodGet, "/v1/connections", admin, "", &list)
	if list.Closed["disconnected"] != 2 || len(list.Connections) != 1 {
		t.Fatalf("after it: %+v", list)
	}
	ask(http.MethodPost, "/v1/connections/disconnect", admin, `{"id":"`+list.Connections[0].ID+`"}`, &done)
	eventually(t, "the end of the one", mine.over)
	_ = other.body.Close()
	s.connections(0)
}

type connectionsSeen struct {
	Connections []struct {
		ID, User, By, Role, Remote string
		Topics                     []string
		Since                      time.Time
		Delivered                  int
	}
	Total  int
	Closed map[string]int
}
