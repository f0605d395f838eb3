package alerts

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// State is whether something is wrong now.
type State string

// The states of an alert.
const (
	Raised  State = "raised"
	Cleared State = "cleared"
)

// Alert is a threshold that is, or was, breached for a handler, or for the store as a whole.
type Alert struct {
	// ID is the setting that is its threshold.
	ID        string             `json:"alert" doc:"the setting that is its threshold"`
	Title     string             `json:"title"`
	Handler   outbox.HandlerName `json:"handler,omitempty" doc:"whose lane it is; left out for what concerns the whole store"`
	State     State              `json:"state" enum:"raised,cleared"`
	Value     float64            `json:"value" doc:"the latest, in the unit"`
	Threshold float64            `json:"threshold"`
	Unit      string             `json:"unit" enum:"seconds,bytes,count,ratio,per-second"`
	RaisedAt  time.Time          `json:"raised_at"`
	ClearedAt *time.Time         `json:"cleared_at,omitempty"`
	UseCases  []string           `json:"use_cases" doc:"whose delivery target it watches"`
	Runbooks  []string           `json:"runbooks" doc:"what to do"`

	// Tenant is whose handler it is.
	Tenant outbox.TenantID `json:"-"`
}

// Type is what alerts are called where they are sent.
const Type = "posthorn-alert"

// message is the alert as a receiver gets it. Each change of an alert is a message of its own, and keeps its id however often it is sent.
func (a Alert) message(id outbox.MessageID) (outbox.Message, error) {
	payload, err := json.Marshal(a)
	return outbox.Message{ID: id, Type: Type, SchemaVersion: 1, Tenant: a.Tenant, ContentType: "application/json", Payload: payload, OccurredAt: a.changed()}, err
}

// unitOf is the unit of an alert's value: a number of its setting's.
func unitOf(unit records.Unit) string {
	if unit == records.Duration {
		return "seconds"
	}
	return string(unit)
}

func (a Alert) changed() time.Time {
	if a.ClearedAt != nil {
		return *a.ClearedAt
	}
	return a.RaisedAt
}

func (a Alert) key() key { return key{a.ID, a.Handler} }

// key tells alerts apart.
type key struct {
	id      string
	handler outbox.HandlerName
}

func sorted(list []Alert) []Alert {
	slices.SortFunc(list, func(a, b Alert) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Handler, b.Handler)) })
	return list
}
