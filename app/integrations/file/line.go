package file

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/outbox"
)

// head is a line up to its payload.
type head struct {
	ID            outbox.MessageID `json:"id"`
	Type          string           `json:"type"`
	SchemaVersion int              `json:"schema_version"`
	Tenant        outbox.TenantID  `json:"tenant"`
	OccurredAt    time.Time        `json:"occurred_at"`
	Attempt       int              `json:"attempt"`
	Fence         outbox.Fence     `json:"fence"`
	ContentType   string           `json:"content_type"`
}

// line maps a delivery to its line, line break included: the only place that knows how a message looks in a file.
func line(d outbox.Delivery) ([]byte, error) {
	message := d.Message
	begin, err := json.Marshal(head{
		ID: message.ID, Type: message.Type, SchemaVersion: message.SchemaVersion, Tenant: message.Tenant, OccurredAt: message.OccurredAt.UTC(),
		Attempt: d.Attempt, Fence: d.Fence, ContentType: message.ContentType,
	})
	if err != nil {
		return nil, fmt.Errorf("write line: %w", err)
	}
	// The payload is put in by hand, since an encoder would compact and escape it.
	text := bytes.NewBuffer(make([]byte, 0, len(begin)+base64.StdEncoding.EncodedLen(len(message.Payload))+32))
	text.Write(begin[:len(begin)-1])
	if verbatim(message.Payload) {
		text.WriteString(`,"payload":`)
		text.Write(message.Payload)
	} else {
		text.WriteString(`,"payload_base64":"`)
		text.Write(base64.StdEncoding.AppendEncode(nil, message.Payload))
		text.WriteByte('"')
	}
	text.WriteString("}\n")
	return text.Bytes(), nil
}

// verbatim reports whether a payload can stand in a line as it is and be read back byte for byte.
func verbatim(payload []byte) bool {
	return !bytes.ContainsAny(payload, "\r\n") && len(bytes.TrimSpace(payload)) == len(payload) &&
		utf8.Valid(payload) && json.Valid(payload)
}
