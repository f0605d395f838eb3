package api

import (
	"context"
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/realtime"
)

// reasonDisconnected counts the streams that an operator closed.
const reasonDisconnected = "disconnected"

// Connections are the live streams; see realtime.Hub.
type Connections interface {
	Connections() []realtime.Connection
	Stats() realtime.Stats
	Revoke(g realtime.Grant, reason string) int
}

// connection is one live stream.
type connection struct {
	ID        string           `json:"id"`
	User      string           `json:"user" doc:"tenant and actor: main/token:kiosk"`
	Role      string           `json:"role"`
	By        string           `json:"by" enum:"session,token,socket" doc:"the kind of credential that it was opened with"`
	Topics    []realtime.Topic `json:"topics"`
	Remote    string           `json:"remote" doc:"the peer's address, as the server sees it"`
	Since     time.Time        `json:"since"`
	ExpiresAt *time.Time       `json:"expires_at"`
	Lag       float64          `json:"lag_seconds" doc:"how long the client has not taken what was written to it"`
	Queued    int              `json:"queued" doc:"how many of its topics have something to tell"`
	Delivered uint64           `json:"delivered"`
	Coalesced uint64           `json:"coalesced" doc:"notifications that a newer one of their topic made superfluous"`
}

// connectionList is who listens. The counts are of all tenants, since the start of the process.
type connectionList struct {
	Connections []connection       `json:"connections"`
	Total       int                `json:"total" doc:"live streams of all tenants"`
	Closed      map[string]uint64  `json:"closed" doc:"streams that ended, by reason"`
	Refused     map[string]uint64  `json:"refused" doc:"streams that were not admitted, by reason"`
	Freshness   mediator.Freshness `json:"freshness"`
}

// disconnectBody names whom to disconnect.
type disconnectBody struct {
	ID     string `json:"id,omitempty" doc:"one stream"`
	User   string `json:"user,omitempty" doc:"every stream of a user, as /v1/connections names them"`
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"for the audit"`
}

// disconnected answers it.
type disconnected struct {
	Closed int `json:"closed"`
}

// disconnect is the command.
type disconnect struct{ disconnectBody }

// Validate asks for one of the two.
func (d disconnect) Validate() error {
	if (d.ID == "") == (d.User == "") {
		return mediator.Violations{{Path: "/id", Message: "either id or user names whom to disconnect"}}.Refusal("invalid", "Whom to disconnect is not clear.", "GET /v1/connections names both.")
	}
	return nil
}

// Authorize asks for an admin.
func (disconnect) Authorize(by access.Principal) error { return by.Require(access.Admin) }

func (s *server) connectionRoutes() {
	add[nothing, connectionList](s, operation{method: http.MethodGet, path: "/v1/connections", tag: "connections", query: []parameter{tenantParameter},
		summary: "List who listens to live updates, to what, since when, and how far behind", description: "It needs an admin."},
		func(x *exchange, _ nothing) (reply, error) {
			by, err := access.Require(x.Context(), access.Admin)
			if err != nil {
				return reply{}, err
			}
			stats := s.Live.Stats()
			list := connectionList{Connections: []connection{}, Total: stats.Connections, Closed: stats.Closed, Refused: stats.Refused, Freshness: mediator.Immediate}
			for _, c := range s.Live.Connections() {
				if c.Tenant == string(by.Tenant) {
					list.Connections = append(list.Connections, showConnection(c))
				}
			}
			return reply{http.StatusOK, list}, nil
		})
	add[disconnectBody, disconnected](s, operation{method: http.MethodPost, path: "/v1/connections/disconnect", tag: "connections", query: []parameter{tenantParameter},
		summary: "Close one stream, or all of a user's",
		description: "Nothing that waits for them is delivered any more. Whoever still has access comes back by themselves: to keep somebody out, revoke their API token or end their session. " +
			"It needs an admin."},
		func(x *exchange, in disconnectBody) (reply, error) {
			done, err := mediator.Send(x.Context(), s.Mediator, disconnect{in}, func(ctx context.Context, work *mediator.UnitOfWork, d disconnect) (*disconnected, error) {
				done := &disconnected{}
				subject := d.ID + d.User
				whose := realtime.Grant{Tenant: string(work.By.Tenant), Connection: d.ID, User: d.User}
				work.AfterCommit(func() { done.Closed = s.Live.Revoke(whose, reasonDisconnected) })
				return done, access.Audit(ctx, work.Tx, work.By, "connection.close", subject, d.Reason)
			})
			return reply{http.StatusOK, done}, err
		})
}

func showConnection(c realtime.Connection) connection {
	one := connection{ID: c.ID, User: c.User, Role: c.Role, By: "socket", Topics: c.Topics, Remote: c.Remote, Since: c.Since.UTC(),
		Lag: c.Lag.Seconds(), Queued: c.Queued, Delivered: c.Delivered, Coalesced: c.Coalesced}
	switch {
	case c.Session != "":
		one.By = "session"
	case c.APIToken != "":
		one.By = "token"
	}
	if !c.Expires.IsZero() {
		at := c.Expires.UTC()
		one.ExpiresAt = &at
	}
	return one
}
