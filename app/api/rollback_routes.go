package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/uptrace/bun"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// readers is what a program reads, as posthorn version --readers prints it.
type readers struct {
	Version string        `json:"version,omitempty" doc:"the program's"`
	Reads   []TypeVersion `json:"reads"`
}

// TypeVersion is a version of a message type.
type TypeVersion struct {
	Kind          outbox.Kind `json:"kind" enum:"integration-event,journey-step,provider-effect"`
	Type          string      `json:"type"`
	SchemaVersion int         `json:"schema_version" minimum:"1"`
}

// rollback says what a program would leave lying.
type rollback struct {
	Readable   bool               `json:"readable" doc:"it reads everything that is not dispatched"`
	Counts     []unreadCount      `json:"counts"`
	Deliveries []unread           `json:"deliveries" doc:"the first of them, oldest first"`
	Freshness  mediator.Freshness `json:"freshness"`
}

type unreadCount struct {
	TypeVersion
	State      outbox.StateName `json:"state" enum:"pending,processing,dead-letter"`
	Deliveries int64            `json:"deliveries"`
}

type unread struct {
	TypeVersion
	Message  outbox.MessageID   `json:"message"`
	Delivery outbox.DeliveryID  `json:"delivery"`
	Tenant   outbox.TenantID    `json:"tenant"`
	Handler  outbox.HandlerName `json:"handler"`
	State    outbox.StateName   `json:"state" enum:"pending,processing,dead-letter"`
}

const (
	mostReads  = 10_000
	mostUnread = 200
)

// Validate bounds the list.
func (r readers) Validate() error {
	var wrong mediator.Violations
	if len(r.Reads) > mostReads {
		wrong.Add("/reads", fmt.Sprintf("must have at most %d entries", mostReads))
	}
	for i, t := range r.Reads[:min(len(r.Reads), mostReads)] {
		if !outbox.ValidType(t.Type) || t.SchemaVersion < 1 {
			wrong.Add(fmt.Sprintf("/reads/%d", i), "must be a kind, a type and a schema_version from 1")
		}
	}
	return wrong.Refusal("bad-readers", "This is no list of what a program reads.", "posthorn version --readers of the other program prints it.")
}

// Authorize asks for an operator.
func (r readers) Authorize(by access.Principal) error { return by.Require(access.Operator) }

func (s *server) rollbackRoutes() {
	add[readers, rollback](s, operation{method: http.MethodPost, path: "/v1/rollback-check", tag: "deliveries", summary: "List what is not dispatched and another program could not read",
		description: "Send what the older program prints for posthorn version --readers. Nothing is changed. The machine's own user is told of every tenant, unless the query names one, others of their own.",
		query:       []parameter{tenantParameter}},
		func(x *exchange, in readers) (reply, error) {
			answer, err := mediator.Ask(x.Context(), s.Mediator, in, func(ctx context.Context, db *bun.DB, by access.Principal, in readers) (rollback, error) {
				tenant := by.Tenant
				if by.Local() && !x.query.Has("tenant") {
					tenant = ""
				}
				reads := make([]outbox.TypeVersion, len(in.Reads))
				for i, t := range in.Reads {
					reads[i] = outbox.TypeVersion(t)
				}
				counts, first, err := outbox.FindUndispatched(ctx, db.DB, tenant, reads, mostUnread)
				if err != nil {
					return rollback{}, err
				}
				answer := rollback{Readable: len(counts) == 0, Counts: []unreadCount{}, Deliveries: []unread{}, Freshness: mediator.Immediate}
				for _, c := range counts {
					answer.Counts = append(answer.Counts, unreadCount{TypeVersion(c.TypeVersion), c.State, c.Deliveries})
				}
				for _, u := range first {
					answer.Deliveries = append(answer.Deliveries, unread{TypeVersion(u.TypeVersion), u.ID, u.Delivery, u.Tenant, u.Handler, u.State})
				}
				return answer, nil
			})
			return reply{http.StatusOK, answer}, err
		})
}
