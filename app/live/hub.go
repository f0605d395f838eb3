package live

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/realtime"
)

// Why a stream is closed before its time, beside what package realtime names itself. They are counted, so they are few.
const (
	ReasonSignedOut = "signed-out"
	ReasonRevoked   = "revoked"
)

// NewHub returns a hub whose bounds are the setting records (P48) and whose streams end with the session or the API token that opened
// them (P45).
func NewHub(set *records.Set, sessions *session.Sessions, tokens *access.Tokens, logger *slog.Logger) (*realtime.Hub, error) {
	hub, err := realtime.NewHub(realtime.Config{
		MaxConnections:  set.Int("live-connections"),
		MaxPerUser:      set.Int("live-connections-user"),
		MaxRequestBytes: int(set.Bytes("live-receive-size")),
		MaxEventBytes:   int(set.Bytes("live-event-size")),
		History:         set.Int("live-history"),
		WriteTimeout:    set.Duration("live-client-timeout"),
		Heartbeat:       set.Duration("live-heartbeat"),
		LifeSpan:        set.Duration("live-lifespan"),
		RevalidateEvery: set.Duration("live-revalidation"),
		MaxPerAddress:   set.Int("live-connections-address"),
		Revalidate:      revalidation{sessions, tokens}.check,
		Permit:          permitted,
		Logger:          logger,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare live updates: %w", err)
	}
	sessions.OnEnd(func(id string) {
		hub.Revoke(realtime.Grant{Session: id}, ReasonSignedOut)
	})
	// A session that an API token opened carries that token's id, and ends with it.
	tokens.OnRevoke(func(id string) {
		hub.Revoke(realtime.Grant{APIToken: id}, ReasonRevoked)
	})
	return hub, nil
}

// Endpoint is GET /v1/events.
func Endpoint(hub *realtime.Hub, a Authorizer) http.Handler {
	return &realtime.Endpoint{Hub: hub, Authorize: a.Authorize}
}
