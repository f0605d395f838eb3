package emits

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// Emit is an integration event as a caller writes it.
type Emit struct {
	Type          string          `json:"type" doc:"the event's type; a record integration-events/<type> declares it" pattern:"^[a-z][a-z0-9-]{0,62}$" example:"order-placed"`
	SchemaVersion *int            `json:"schema_version,omitempty" doc:"the version of the payload's schema; 1 when left out, never the latest" minimum:"1"`
	Payload       json.RawMessage `json:"payload,omitempty" doc:"any JSON value; kept, signed and sent byte for byte as it stands here"`
	PayloadBase64 *string         `json:"payload_base64,omitempty" doc:"the bytes of a payload that is no JSON, in standard Base64; needs content_type"`
	ContentType   *string         `json:"content_type,omitempty" doc:"the media type of the payload; application/json for payload when left out"`
	ID            *string         `json:"id,omitempty" doc:"the message's id and idempotency key; a time-ordered UUID when left out" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	OrderingKey   *string         `json:"ordering_key,omitempty" doc:"messages with one key reach a handler one at a time, in commit order" minLength:"1" maxLength:"200"`
	DeliverAt     *string         `json:"deliver_at,omitempty" format:"date-time" doc:"not before this time; not together with ordering_key"`
}

// Message is the message that the event becomes. Its error is a *mediator.Refusal with the places below path.
func (e Emit) Message(path string) (outbox.Message, error) {
	var wrong mediator.Violations
	m := outbox.Message{Kind: outbox.IntegrationEvent, Type: e.Type, SchemaVersion: 1}
	if !outbox.ValidType(e.Type) {
		wrong.Add(path+"/type", "must be 1 to 63 lower-case letters, digits and hyphens, a letter first")
	}
	if e.SchemaVersion != nil {
		if m.SchemaVersion = *e.SchemaVersion; m.SchemaVersion < 1 || m.SchemaVersion > 1_000_000 {
			wrong.Add(path+"/schema_version", "must be a whole number from 1 to 1000000")
		}
	}
	if e.ID != nil {
		if m.ID = outbox.MessageID(*e.ID); !outbox.ValidID(*e.ID) {
			wrong.Add(path+"/id", "must be 1 to 64 of A-Z a-z 0-9 _ -; leave it out to have one made")
		}
	}
	if e.OrderingKey != nil {
		m.OrderingKey = *e.OrderingKey
		if n := utf8.RuneCountInString(m.OrderingKey); n < 1 || n > 200 || strings.ContainsRune(m.OrderingKey, 0) {
			wrong.Add(path+"/ordering_key", "must be 1 to 200 characters")
		}
	}
	if e.DeliverAt != nil {
		at, err := time.Parse(time.RFC3339, *e.DeliverAt)
		at = at.UTC() // an offset can carry it out of the years that are stored
		switch {
		case err != nil || at.Year() < 1970 || at.Year() > 9999:
			wrong.Add(path+"/deliver_at", "must be a time with its offset, as RFC 3339 writes it: 2026-01-31T09:30:00+01:00")
		case e.OrderingKey != nil:
			wrong.Add(path+"/deliver_at", "must be left out beside ordering_key: a scheduled message would hold back its key")
		default:
			m.DeliverAt = at.Truncate(time.Microsecond)
		}
	}
	e.payload(path, &m, &wrong)
	return m, wrong.Refusal("invalid", "The event is not as it should be.", "")
}

// payload fills the payload's bytes and media type.
func (e Emit) payload(path string, m *outbox.Message, wrong *mediator.Violations) {
	media := ""
	if e.ContentType != nil {
		parsed, _, err := mime.ParseMediaType(*e.ContentType)
		if err != nil || !strings.Contains(parsed, "/") || len(*e.ContentType) > 200 || strings.ContainsFunc(*e.ContentType, unprintable) {
			wrong.Add(path+"/content_type", "must be a media type of at most 200 printable characters")
			return
		}
		media, m.ContentType = parsed, *e.ContentType
	}
	switch {
	case e.Payload != nil && e.PayloadBase64 != nil:
		wrong.Add(path+"/payload_base64", "must be left out beside payload")
	case e.Payload != nil:
		if media != "" && !isJSON(media) {
			wrong.Add(path+"/content_type", "must be a JSON media type beside payload; other bytes go as payload_base64")
		}
		m.Payload = e.Payload
	case e.PayloadBase64 == nil:
		wrong.Add(path+"/payload", "is missing; give any JSON value, or other bytes as payload_base64")
	default:
		payload, err := base64.StdEncoding.Strict().DecodeString(*e.PayloadBase64)
		if err != nil || strings.ContainsAny(*e.PayloadBase64, "\r\n") {
			wrong.Add(path+"/payload_base64", "must be standard Base64 with padding")
		}
		if media == "" {
			wrong.Add(path+"/content_type", "is missing; payload_base64 needs the media type of its bytes")
		} else if isJSON(media) && (!utf8.Valid(payload) || !json.Valid(payload)) {
			wrong.Add(path+"/payload_base64", "must be JSON in UTF-8, as content_type says")
		}
		m.Payload = payload
	}
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// tooLarge refuses a payload over the bound.
func tooLarge(path string, most int64) error {
	return &mediator.Refusal{Kind: mediator.TooLarge, Code: "payload-too-large",
		Sentence: "The payload is larger than a message may be.",
		Hint:     "Store it elsewhere and send its address.",
		At:       []mediator.Violation{{Path: path + "/payload", Message: fmt.Sprintf("must be at most %d bytes (setting payload-limit)", most)}}}
}
