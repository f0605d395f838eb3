package messages

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// Summary is a message as a list shows it: without its payload.
type Summary struct {
	ID            outbox.MessageID `json:"id"`
	Kind          outbox.Kind      `json:"kind" enum:"integration-event,journey-step,provider-effect"`
	Type          string           `json:"type"`
	SchemaVersion int              `json:"schema_version"`
	Record        *string          `json:"record" doc:"the integration-event record that declares it"`
	Tenant        outbox.TenantID  `json:"tenant"`
	OccurredAt    time.Time        `json:"occurred_at"`
	DeliverAt     *time.Time       `json:"deliver_at"`
	OrderingKey   *string          `json:"ordering_key"`
	ContentType   string           `json:"content_type"`
	State         outbox.StateName `json:"state" enum:"dead-letter,processing,pending,dispatched" doc:"the first of these that any delivery has"`
	Deliveries    []Delivery       `json:"deliveries"`
}

// Detail is one message with everything that is known of it.
type Detail struct {
	Summary
	Payload       json.RawMessage    `json:"payload,omitempty" doc:"a view of the payload, where it is JSON; /payload has its bytes"`
	PayloadBase64 *string            `json:"payload_base64,omitempty" doc:"the payload's bytes, where it is no JSON"`
	PayloadBytes  int                `json:"payload_bytes" doc:"its size"`
	Masked        []string           `json:"masked,omitempty" doc:"the places of the payload, as JSON pointers, whose classification the caller's role may not see: each holds the name of its class. \"\" is all of it"`
	PayloadSHA256 *string            `json:"payload_sha256" doc:"in hexadecimal; null before the first attempt of a message that was staged by SQL"`
	Headers       map[string]string  `json:"headers"`
	Freshness     mediator.Freshness `json:"freshness"`
}

// Delivery is a message's delivery to one handler. What belongs to another state than its own is null.
type Delivery struct {
	ID             outbox.DeliveryID  `json:"id"`
	Handler        outbox.HandlerName `json:"handler"`
	State          outbox.StateName   `json:"state" enum:"pending,processing,dispatched,dead-letter"`
	Attempt        int                `json:"attempt" doc:"starts so far; never reset"`
	Charged        int                `json:"charged" doc:"those that the retry bound applies to"`
	NextAttemptAt  *time.Time         `json:"next_attempt_at"`
	Blocked        *bool              `json:"blocked" doc:"pending: an earlier message of its ordering key is unfinished"`
	Held           *bool              `json:"held" doc:"pending: its handler is paused, disabled or gone"`
	LeaseOwner     *string            `json:"lease_owner" doc:"processing: the worker that holds it, or the consumer that has pulled it"`
	LeaseExpiresAt *time.Time         `json:"lease_expires_at" doc:"processing: when it is due again unless it is settled by then"`
	Fence          outbox.Fence       `json:"fence" doc:"the fencing token of the latest claim; 0 before the first"`
	LastError      *string            `json:"last_error"`
	FailureClass   *string            `json:"failure_class"`
	Suppressed     *bool              `json:"suppressed" doc:"dispatched: the handler had handled the message before"`
	CompletedAt    *time.Time         `json:"completed_at"`
	ResendOf       *outbox.DeliveryID `json:"resend_of" doc:"the delivery that this one sends again"`
	CreatedAt      time.Time          `json:"created_at"`
	Attempts       []Attempt          `json:"attempts,omitempty" doc:"those that failed, oldest first; the latest 200"`
	Replays        []Replay           `json:"replays,omitempty"`
}

// Attempt is an attempt that failed.
type Attempt struct {
	Attempt   int          `json:"attempt"`
	Fence     outbox.Fence `json:"fence"`
	Charged   bool         `json:"charged"`
	Class     outbox.Class `json:"class"`
	Status    *int         `json:"status" doc:"the HTTP status, where there was one"`
	Error     string       `json:"error"`
	Excerpt   *string      `json:"excerpt" doc:"the beginning of what the target answered; null where the payload is masked, since targets repeat what they got"`
	StartedAt time.Time    `json:"started_at"`
	Duration  float64      `json:"duration_seconds" doc:"how long it took"`
}

// Replay is an operator's return of a dead letter to pending.
type Replay struct {
	Actor      string    `json:"actor"`
	Reason     string    `json:"reason"`
	ReplayedAt time.Time `json:"replayed_at"`
	Failure    string    `json:"failure" doc:"the failure that it answers"`
}

func summaryOf(m outbox.MessageRecord) Summary {
	s := Summary{
		ID: m.ID, Kind: m.Kind, Type: m.Type, SchemaVersion: m.SchemaVersion, Tenant: m.Tenant, OccurredAt: m.OccurredAt,
		DeliverAt: given(m.DeliverAt), OrderingKey: given(m.OrderingKey), ContentType: m.ContentType, State: m.State(),
		Deliveries: make([]Delivery, len(m.Deliveries)),
	}
	if m.Kind == outbox.IntegrationEvent {
		s.Record = given("integration-events/" + m.Type)
	}
	for i, d := range m.Deliveries {
		s.Deliveries[i] = deliveryOf(d)
	}
	return s
}

// lease shows of what a consumer has pulled the consumer's own lease, which is within that of the worker who handed it out.
func (s *Module) lease(deliveries []Delivery) {
	for i := range deliveries {
		d := &deliveries[i]
		if d.State != outbox.StateProcessing {
			continue
		}
		if owner, expires, held := s.leases(d.Handler, d.ID, d.Fence); held {
			d.LeaseOwner, d.LeaseExpiresAt = &owner, &expires
		}
	}
}

// detailOf shows a message. What its version classifies as closed is masked, unless all is true.
func detailOf(m outbox.MessageRecord, version *records.Version, all bool) Detail {
	d := Detail{Summary: summaryOf(m), PayloadBytes: len(m.Payload), Headers: m.Headers, Freshness: mediator.Immediate}
	if d.Headers == nil {
		d.Headers = map[string]string{}
	}
	if m.Hashed {
		d.PayloadSHA256 = given(hex.EncodeToString(m.PayloadSHA256[:]))
	}
	payload, parsed := m.Payload, isJSON(m)
	if !all {
		payload, d.Masked = version.Mask(m.Payload, parsed)
	}
	if len(d.Masked) > 0 {
		for i := range d.Deliveries {
			for j := range d.Deliveries[i].Attempts {
				d.Deliveries[i].Attempts[j].Excerpt = nil
			}
		}
	}
	switch {
	case parsed:
		d.Payload = payload
	case payload != nil:
		text := base64.StdEncoding.EncodeToString(payload)
		d.PayloadBase64 = &text
	}
	return d
}

func isJSON(m outbox.MessageRecord) bool {
	media, _, _ := mime.ParseMediaType(m.ContentType)
	return (media == "application/json" || strings.HasSuffix(media, "+json")) && utf8.Valid(m.Payload) && json.Valid(m.Payload)
}

func deliveryOf(r outbox.DeliveryRecord) Delivery {
	d := Delivery{
		ID: r.ID, Handler: r.Handler, State: r.State.Name(), Attempt: r.Attempt, Charged: r.Charged, Fence: r.Fence,
		LastError: given(r.LastError), FailureClass: given(string(r.FailureClass)), ResendOf: given(r.ResendOf), CreatedAt: r.CreatedAt,
	}
	switch state := r.State.(type) {
	case outbox.Pending:
		d.NextAttemptAt, d.Blocked, d.Held = &state.NextAttemptAt, &state.Blocked, &r.Held
	case outbox.Processing:
		d.LeaseOwner, d.LeaseExpiresAt = &state.Owner, &state.ExpiresAt
	case outbox.Dispatched:
		d.CompletedAt, d.Suppressed = &state.CompletedAt, &state.Suppressed
	case outbox.DeadLetter:
		d.CompletedAt = &state.CompletedAt
	}
	for _, a := range r.Attempts {
		d.Attempts = append(d.Attempts, Attempt{
			Attempt: a.Attempt, Fence: a.Fence, Charged: a.Charged, Class: a.Class, Status: given(a.Status), Error: a.Error,
			Excerpt: given(a.Excerpt), StartedAt: a.StartedAt, Duration: a.Duration.Seconds(),
		})
	}
	for _, p := range r.Replays {
		d.Replays = append(d.Replays, Replay(p))
	}
	return d
}

// given is nil for a zero value, which stands for nothing.
func given[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
