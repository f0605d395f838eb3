package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/realtime"
)

// Authorizer admits the callers that the API found.
type Authorizer struct {
	// Lending says that the branch is on. Without it there is no desk to hear of.
	Lending bool
	// Address says from where a request came, for the bound of each address.
	Address func(*http.Request) string
}

// Authorize admits a caller to every topic, or to none: each is looked at by itself. The tenant is the caller's, and every topic is
// inside it; one that does not exist is refused like one that the caller may not hear.
func (a Authorizer) Authorize(r *http.Request, topics []realtime.Topic) (realtime.Principal, error) {
	by, ok := access.From(r.Context())
	if !ok {
		return realtime.Principal{}, realtime.ErrUnauthenticated
	}
	for _, t := range topics {
		if !known(t) || t == topicDesk && !a.Lending || !mayHear(by.Role) {
			return realtime.Principal{}, realtime.ErrForbidden
		}
	}
	p := realtime.Principal{
		User: string(by.Tenant) + "/" + by.Actor, Tenant: string(by.Tenant), Role: string(by.Role), Session: by.SessionID, APIToken: by.TokenID, Expires: by.ExpiresAt,
	}
	if a.Address != nil {
		p.Address = a.Address(r)
	}
	return p, nil
}

// mayHear is the rule of all topics there are: they tell no more than that something changed, and the query decides what is shown.
func mayHear(role access.Role) bool { return role.Allows(access.Viewer) }

// permitted asks again, for each topic, when a notification is handed over.
func permitted(s realtime.Subscriber, t realtime.Topic) bool {
	return known(t) && mayHear(access.Role(s.Role))
}

// revalidation asks the store whether a credential still stands for whom it stood for.
type revalidation struct {
	sessions *session.Sessions
	tokens   *access.Tokens
}

// check ends a stream whose session or API token is no longer in force, and one whose user, tenant or role is another by now: the client comes back
// at once and is authorized anew, for less or for more.
func (v revalidation) check(ctx context.Context, s realtime.Subscriber) (time.Time, error) {
	var by access.Principal
	var err error
	switch {
	case s.Session != "":
		by, err = v.sessions.Valid(ctx, s.Session)
	case s.APIToken != "":
		by, err = v.tokens.Valid(ctx, s.APIToken)
	default:
		return time.Time{}, nil // the machine's own user, on the unix socket
	}
	switch {
	case errors.Is(err, access.ErrUnauthenticated):
		return time.Time{}, fmt.Errorf("%w: the session or API token is no longer in force", realtime.ErrUnauthenticated)
	case err != nil:
		return time.Time{}, err
	}
	if string(by.Tenant) != s.Tenant && !by.Local() || s.Tenant+"/"+by.Actor != s.User || string(by.Role) != s.Role {
		return time.Time{}, fmt.Errorf("%w: the credential stands for another by now", realtime.ErrForbidden)
	}
	return by.ExpiresAt, nil
}
