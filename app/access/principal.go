package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/posthorn/posthorn/outbox"
)

// Principal is an authenticated caller.
type Principal struct {
	// Actor is how audit rows name the caller: "token:<name>", "os:<user>", "user:<name>".
	Actor string
	// Tenant is the one that the caller belongs to.
	Tenant outbox.TenantID
	Role   Role
	// TokenID is the token that was shown; empty for other callers.
	TokenID string
	// SessionID is the browser session, where there is one.
	SessionID string
	// ExpiresAt is when the credential ends by itself; zero when it does not.
	ExpiresAt time.Time
}

// Local says that the caller is the machine's own user, who may act for every tenant.
func (p Principal) Local() bool { return p.TokenID == "" && strings.HasPrefix(p.Actor, "os:") }

type contextKey struct{}

// With returns a context in which p is the caller.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the caller; false when nobody was authenticated.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// Require returns the caller if they may do what least may; otherwise ErrUnauthenticated or ErrForbidden.
func Require(ctx context.Context, least Role) (Principal, error) {
	p, ok := From(ctx)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	return p, p.Require(least)
}

// Require answers ErrForbidden unless the principal may do what least may.
func (p Principal) Require(least Role) error {
	if !p.Role.Allows(least) {
		return fmt.Errorf("%w: it needs the role %s, %s is %s", ErrForbidden, least, p.Actor, p.Role)
	}
	return nil
}
