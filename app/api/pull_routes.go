package api

import (
	"encoding/base64"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/integrations/pull"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// pulledPage is what a consumer got.
type pulledPage struct {
	Deliveries []pulledDelivery `json:"deliveries" doc:"the oldest first; empty: nothing was due within the wait"`
	Hold       string           `json:"hold,omitempty" doc:"why the destination does not flow"`
}

// pulledDelivery is a delivery in a consumer's hands.
type pulledDelivery struct {
	ID             outbox.DeliveryID `json:"id" doc:"the delivery's; POST /v1/pull/{handler}/{id} settles it"`
	Fence          outbox.Fence      `json:"fence" doc:"under which it is settled; it rises with each claim"`
	Attempt        int               `json:"attempt" doc:"starts of this delivery, this one included"`
	LeaseExpiresAt time.Time         `json:"lease_expires_at" doc:"when somebody else may get it, unless it is settled or extended"`
	Message        pulledMessage     `json:"message"`
}

// pulledMessage is the message. A consumer suppresses repeats by its id.
type pulledMessage struct {
	ID            outbox.MessageID  `json:"id"`
	Type          string            `json:"type"`
	SchemaVersion int               `json:"schema_version"`
	OccurredAt    time.Time         `json:"occurred_at"`
	OrderingKey   *string           `json:"ordering_key"`
	ContentType   string            `json:"content_type"`
	Headers       map[string]string `json:"headers"`
	Payload       *string           `json:"payload,omitempty" doc:"the payload byte for byte, as a string, where it is UTF-8"`
	PayloadBase64 *string           `json:"payload_base64,omitempty" doc:"the payload byte for byte, where it is not"`
}

// settlementBody says how a delivery went.
type settlementBody struct {
	Fence      int64  `json:"fence" doc:"as it was handed out"`
	Outcome    string `json:"outcome" enum:"delivered,failed,throttled,rejected,released,extended" doc:"delivered: handled. failed: to be retried, and charged. throttled: to be retried, not charged. rejected: no retry can mend it, a dead letter. released: somebody else may have it. extended: the lease starts anew"`
	Error      string `json:"error,omitempty" maxLength:"1000" doc:"why, on one line, without secrets and payload: it is kept and shown"`
	RetryAfter string `json:"retry_after,omitempty" doc:"failed, throttled, released: not before this time has passed" example:"30s"`
}

// settled answers a settlement that is on the disk.
type settled struct {
	ID             outbox.DeliveryID   `json:"id"`
	Outcome        destinations.Result `json:"outcome"`
	LeaseExpiresAt *time.Time          `json:"lease_expires_at,omitempty" doc:"extended: the new end of the lease"`
}

// The defaults of a pull.
const (
	pullMax  = 10
	pullWait = 10 * time.Second
)

func (s *server) pullRoutes() {
	add[nothing, pulledPage](s, operation{
		method: http.MethodGet, path: "/v1/pull/{handler}", tag: "pull", summary: "Ask for the deliveries of a pull destination",
		description: "Each is the caller's under a lease, and counts as an attempt. The answer comes as soon as there is one, or when the wait is over. " +
			"Deliveries with one ordering key come one at a time, in the order of their commits. A restart of Posthorn ends every lease. It needs an operator.",
		query: []parameter{{"max", "how many at the most, 1 to the setting pull-batch; 10 when left out"}, {"wait", "how long to wait for the first, 1s to the setting pull-wait; 10s when left out"}, tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		most, err := x.number("max")
		if err != nil {
			return reply{}, err
		}
		wait := pullWait
		if x.query.Has("wait") {
			if wait, err = time.ParseDuration(x.query.Get("wait")); err != nil {
				return reply{}, mediator.Violations{{Path: "wait", Message: "must be a duration, such as 10s"}}.
					Refusal("invalid-pull", "Deliveries cannot be asked for like this.", "Leave max and wait out for the defaults.")
			}
		}
		if !x.query.Has("max") {
			most = pullMax
		}
		got, err := s.Destinations.Pull(x.Context(), x.PathValue("handler"), most, wait)
		page := pulledPage{Deliveries: make([]pulledDelivery, len(got.Deliveries)), Hold: got.Hold}
		for i, d := range got.Deliveries {
			page.Deliveries[i] = pulledOf(d)
		}
		return reply{http.StatusOK, page}, err
	})
	add[settlementBody, settled](s, operation{
		method: http.MethodPost, path: "/v1/pull/{handler}/{id}", tag: "pull", summary: "Say how a pulled delivery went",
		description: "The answer comes when the outcome is on the disk. A delivery that is not held under this fence any more is refused with stale-fence, and nothing is changed. It needs an operator.",
		query:       []parameter{tenantParameter},
	}, func(x *exchange, in settlementBody) (reply, error) {
		id, err := x.deliveryID()
		if err != nil {
			return reply{}, err
		}
		settlement := destinations.Settlement{Delivery: id, Fence: outbox.Fence(in.Fence), Result: destinations.Result(in.Outcome), Error: in.Error}
		if in.RetryAfter != "" {
			if settlement.After, err = time.ParseDuration(in.RetryAfter); err != nil {
				return reply{}, mediator.Violations{{Path: "/retry_after", Message: "must be a duration, such as 30s"}}.
					Refusal("invalid-settlement", "The delivery cannot be settled like this.", "")
			}
		}
		expires, err := s.Destinations.Settle(x.Context(), x.PathValue("handler"), settlement)
		answer := settled{ID: id, Outcome: settlement.Result}
		if !expires.IsZero() {
			answer.LeaseExpiresAt = &expires
		}
		return reply{http.StatusOK, answer}, err
	})
}

func pulledOf(h pull.Handed) pulledDelivery {
	m := h.Message
	d := pulledDelivery{ID: h.ID, Fence: h.Fence, Attempt: h.Attempt, LeaseExpiresAt: h.Expires, Message: pulledMessage{ID: m.ID, Type: m.Type,
		SchemaVersion: m.SchemaVersion, OccurredAt: m.OccurredAt, ContentType: m.ContentType, Headers: m.Headers}}
	if m.OrderingKey != "" {
		d.Message.OrderingKey = &m.OrderingKey
	}
	if d.Message.Headers == nil {
		d.Message.Headers = map[string]string{}
	}
	if text := string(m.Payload); utf8.ValidString(text) {
		d.Message.Payload = &text
	} else {
		text = base64.StdEncoding.EncodeToString(m.Payload)
		d.Message.PayloadBase64 = &text
	}
	return d
}
