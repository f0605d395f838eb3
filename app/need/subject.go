package need

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// subject is the Posthorn that is measured.
type subject struct {
	Options
	meter *meter
	n     int
	// What the latest change left behind, so that the next one is its contrary.
	lent, paused bool
}

// rows is how much there is to show before the measurement: lists are as long as a page, the branch as busy as one with a few hundred members.
const rows = 60

// prepare fills what the screens show.
func (s *subject) prepare(ctx context.Context) error {
	for i := range 8 {
		body := fmt.Sprintf(`{"name":"bench-%d","kind":"file","path":"bench-%d.jsonl","types":["bench-*"]}`, i, i)
		if err := s.post(ctx, "/v1/destinations", body, nil); err != nil {
			return err
		}
	}
	for i := range rows {
		if err := s.commit(ctx); err != nil {
			return err
		}
		for path, body := range map[string]string{
			"/v1/lending/members": fmt.Sprintf(`{"id":"M-%d","name":"Member %d","email":"m%d@example.org"}`, i, i, i),
			"/v1/lending/copies":  fmt.Sprintf(`{"id":"C-%d","work":"work-%d","title":"A work of some length, %d"}`, i, i, i),
		} {
			if err := s.post(ctx, path, body, nil); err != nil {
				return err
			}
		}
	}
	for i := 1; i < rows/2; i++ {
		if err := s.post(ctx, "/v1/lending/loans", fmt.Sprintf(`{"member":"M-%d","copy":"C-%d"}`, i, i), nil); err != nil {
			return err
		}
	}
	return nil
}

// commit changes a document and stages a message, which every destination gets.
func (s *subject) commit(ctx context.Context) error {
	s.n++
	return s.post(ctx, "/v1/transactions", fmt.Sprintf(
		`{"changes":[{"op":"put","collection":"bench","id":"1","body":{"n":%d}}],"emits":[{"type":"bench-done","payload":{"n":%d,"parcel":"P-1001","carrier":"north","to":"Harbour Lane 7"}}]}`, s.n, s.n), nil)
}

// stage names a screen's path and topic, and what changes that it shows.
func (s *subject) stage(ctx context.Context, screen Screen) (path, topic string, change func(context.Context) error, err error) {
	family, _, _ := strings.Cut(screen.Topic, "/{")
	change = s.commit
	var with []string
	switch family {
	case "messages":
		if family == screen.Topic {
			break
		}
		var made struct{ Messages []struct{ ID string } }
		if err := s.post(ctx, "/v1/transactions", `{"emits":[{"type":"bench-done","payload":{"n":0}}]}`, &made); err != nil {
			return "", "", nil, err
		}
		id := made.Messages[0].ID
		with = []string{"{id}", id}
		if err := s.dispatched(ctx, id); err != nil {
			return "", "", nil, err
		}
		// One handler's delivery is sent again, as by an operator: the reason why somebody looks at one message.
		change = func(ctx context.Context) error {
			return s.post(ctx, "/v1/messages/"+id+"/resend", `{"handler":"bench-1","reason":"measured"}`, nil)
		}
	case "destinations":
		with = []string{"{name}", "bench-0"}
		change = func(ctx context.Context) error {
			s.paused = !s.paused
			verb := "resume"
			if s.paused {
				verb = "pause"
			}
			return s.post(ctx, "/v1/destinations/bench-0/"+verb, "", nil)
		}
	case "documents":
		with = []string{"{collection}", "bench", "{id}", "1"}
	case "lending/desk", "lending/statistics", "lending/loans":
		change = func(ctx context.Context) error {
			s.lent = !s.lent
			if s.lent {
				return s.post(ctx, "/v1/lending/loans", `{"member":"M-0","copy":"C-0"}`, nil)
			}
			return s.post(ctx, "/v1/lending/returns", `{"copy":"C-0"}`, nil)
		}
		if family == "lending/loans" {
			var loan struct{ ID string }
			if err := s.post(ctx, "/v1/lending/loans", fmt.Sprintf(`{"member":"M-%d","copy":"C-%d"}`, rows-1, rows-1), &loan); err != nil {
				return "", "", nil, err
			}
			with = []string{"{id}", loan.ID}
		}
	}
	fill := strings.NewReplacer(with...)
	return fill.Replace(screen.Query), fill.Replace(screen.Topic), change, nil
}

// dispatched waits until every delivery of a message is.
func (s *subject) dispatched(ctx context.Context, id string) error {
	for range 200 {
		var m struct{ Deliveries []struct{ State string } }
		if err := s.ask(ctx, s.meter, http.MethodGet, "/v1/messages/"+id, "", &m); err != nil {
			return err
		}
		waiting := len(m.Deliveries) == 0
		for _, d := range m.Deliveries {
			waiting = waiting || d.State != "dispatched"
		}
		if !waiting {
			return nil
		}
		rest(ctx, 50*time.Millisecond)
	}
	return fmt.Errorf("message %s was not dispatched within ten seconds", id)
}

func (s *subject) post(ctx context.Context, path, body string, into any) error {
	return s.ask(ctx, s.meter, http.MethodPost, path, body, into)
}

func (s *subject) ask(ctx context.Context, m *meter, method, path, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := m.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text := drain(response)
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}
