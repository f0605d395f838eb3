package outbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Kind says what a message is (P10).
type Kind string

const (
	// IntegrationEvent is a published fact, declared by a record. It reaches every handler with a matching route.
	IntegrationEvent Kind = "integration-event"
	// JourneyStep is the next command of a journey. It has exactly one handler.
	JourneyStep Kind = "journey-step"
	// ProviderEffect is a side effect on an outside provider. It has exactly one handler.
	ProviderEffect Kind = "provider-effect"
)

// MaxPayload is the largest payload that the schema accepts, in bytes. A program may set itself a lower bound.
const MaxPayload = 16 << 20

// Message is what a program stages. Its content never changes afterwards.
type Message struct {
	// Seq is the place in commit order; given by the store.
	Seq int64
	// ID is the idempotency key, [A-Za-z0-9_-]{1,64}. Defaults to a fresh UUIDv7.
	ID MessageID
	// Kind defaults to IntegrationEvent.
	Kind Kind
	// Type is the stable name: lower-case letters, digits and hyphens, a letter first, at most 63.
	Type string
	// SchemaVersion is the version of the payload's schema. Defaults to 1, never to "the latest" (P28).
	SchemaVersion int
	// Tenant defaults to MainTenant.
	Tenant TenantID
	// OccurredAt defaults to the time of the transaction.
	OccurredAt time.Time
	// DeliverAt, unless zero, is the time before which no attempt is made.
	DeliverAt time.Time
	// OrderingKey, unless empty, makes each handler receive the messages of one key one at a time, in commit order.
	OrderingKey string
	// ContentType defaults to application/json.
	ContentType string
	// Payload is kept, hashed, signed, sent and shown exactly as given.
	Payload []byte
	// PayloadSHA256 is filled when staging.
	PayloadSHA256 [sha256.Size]byte
	// Headers travel with the message: traceparent, correlation, causation, producer.
	Headers map[string]string
}

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	typePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
)

// ValidID reports whether s may be a message id or a tenant.
func ValidID(s string) bool { return idPattern.MatchString(s) }

// ValidType reports whether s may be the type of a message.
func ValidType(s string) bool { return typePattern.MatchString(s) }

// filled returns m with its defaults.
func (m Message) filled(now time.Time) Message {
	if m.ID == "" {
		m.ID = NewMessageID()
	}
	if m.Kind == "" {
		m.Kind = IntegrationEvent
	}
	if m.SchemaVersion == 0 {
		m.SchemaVersion = 1
	}
	if m.Tenant == "" {
		m.Tenant = MainTenant
	}
	if m.OccurredAt.IsZero() {
		m.OccurredAt = now
	}
	if m.ContentType == "" {
		m.ContentType = "application/json"
	}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	m.PayloadSHA256 = sha256.Sum256(m.Payload)
	return m
}

func encodeHeaders(h map[string]string) (string, error) {
	if len(h) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode headers: %w", err)
	}
	return string(b), nil
}

// decodeHeaders reads the headers column. A foreign writer may have put other JSON values beside strings; those are left out.
func decodeHeaders(s string) map[string]string {
	if s == "" || s == "{}" {
		return nil
	}
	var raw map[string]any
	if json.Unmarshal([]byte(s), &raw) != nil {
		return nil
	}
	h := make(map[string]string, len(raw))
	for k, v := range raw {
		if str, ok := v.(string); ok {
			h[k] = str
		}
	}
	return h
}

// micros is how the store keeps times: whole microseconds since 1970, UTC.
func micros(t time.Time) int64 { return t.UnixMicro() }

// fromMicros reads a time of the store. One that a foreign writer put outside of the years that can be shown counts as the nearest of them.
func fromMicros(us int64) time.Time { return time.UnixMicro(min(max(us, earliest), latest)).UTC() }

// earliest and latest are the first and the last microsecond of the years 1 to 9999.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	latest   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1
)
