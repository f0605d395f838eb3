package realtime

import (
	"errors"
	"time"
)

// Errors that Endpoint.Authorize returns, bare or wrapped. Any other error is answered as a fault of the server.
var (
	// ErrUnauthenticated: the request carries no valid credential.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden: at least one topic does not exist or is not for this caller. Both are answered alike, so that a refusal tells
	// nobody what exists.
	ErrForbidden = errors.New("topic forbidden")
)

// Principal is who a connection was authorized for.
type Principal struct {
	// User is required, and unique across tenants.
	User string
	// Tenant scopes every topic of the connection.
	Tenant string
	// Role is the application's own word for what the user may do, for Revalidate and Permit to compare.
	Role string
	// Session and APIToken are the ids of the credentials that the connection rests on; see Grant.
	Session  string
	APIToken string
	// Address groups connections for Config.MaxPerAddress. Only the application knows which proxy it may believe.
	Address string
	// Expires ends the connection. Zero means that the credential does not expire.
	Expires time.Time
}

// Subscriber is one live connection, as Revoke, Revalidate and Permit see it.
type Subscriber struct {
	Principal
	// ID is the connection's own, random.
	ID string
	// Topics are fixed for the connection's life. They must not be changed.
	Topics []Topic
	// Remote is the peer's address as the server sees it.
	Remote string
	// Since is when the connection was admitted.
	Since time.Time
}
