package notices

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// effect is the payload of lending-notice in version 1.
type effect struct {
	About string    `json:"about"`
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Title string    `json:"title"`
	Until time.Time `json:"until"`
}

// Request is what the provider is sent.
type Request struct {
	// Key is the message's id: the provider sends what has a known key no second time.
	Key     string `json:"key"`
	To      string `json:"to"`
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

var errUnreadable = errors.New("the message is no notice that this integration reads")

// requestOf puts a message into words.
func requestOf(m outbox.Message) (Request, error) {
	var e effect
	if m.SchemaVersion != 1 || json.Unmarshal(m.Payload, &e) != nil || e.Email == "" || e.Title == "" || e.Until.IsZero() {
		return Request{}, errUnreadable
	}
	r := Request{Key: string(m.ID), To: e.Email, Name: e.Name}
	until := e.Until.Format("Monday, 2 January 2006")
	switch e.About {
	case "pickup":
		r.Subject = "Ready for you: " + e.Title
		r.Text = fmt.Sprintf("Dear %s,\n\n%s is held for you until %s.\n", e.Name, e.Title, until)
	case "due":
		r.Subject = "Due: " + e.Title
		r.Text = fmt.Sprintf("Dear %s,\n\nplease bring %s back by %s.\n", e.Name, e.Title, until)
	default:
		return Request{}, errUnreadable
	}
	return r, nil
}
