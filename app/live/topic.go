package live

import (
	"net/http"
	"strings"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// The topics that there are. Each is scoped to the tenant of whoever listens.
const (
	topicBacklog      realtime.Topic = "backlog"
	topicMessages     realtime.Topic = "messages"
	topicDestinations realtime.Topic = "destinations"
	topicAlerts       realtime.Topic = "alerts"
)

func messageTopic(id outbox.MessageID) realtime.Topic {
	return realtime.Topic("messages/" + string(id))
}

func destinationTopic(name string) realtime.Topic { return realtime.Topic("destinations/" + name) }

func documentTopic(collection, id string) realtime.Topic {
	return realtime.Topic("documents/" + collection + "/" + id)
}

// known reports whether there is such a topic. Whether its resource exists is not asked: it may be about to, and an answer would tell.
func known(t realtime.Topic) bool {
	switch t {
	case topicBacklog, topicMessages, topicDestinations, topicDesk, topicStatistics, topicAlerts:
		return true
	}
	parts := strings.Split(string(t), "/")
	switch {
	case len(parts) == 2 && (parts[0] == "messages" || parts[0] == "destinations"):
		return outbox.ValidID(parts[1])
	case len(parts) == 3 && parts[0] == "documents":
		return outbox.ValidType(parts[1]) && parts[2] != ""
	case len(parts) == 3 && parts[0] == "lending" && parts[1] == "loans":
		return outbox.ValidID(parts[2])
	}
	return false
}

// Authorize admits the caller that the API found. Every topic is inside the caller's tenant, so a known topic is theirs to hear; an unknown
// one is refused like a forbidden one.
func Authorize(r *http.Request, topics []realtime.Topic) (realtime.Principal, error) {
	by, ok := access.From(r.Context())
	if !ok {
		return realtime.Principal{}, realtime.ErrUnauthenticated
	}
	if by.Require(access.Viewer) != nil {
		return realtime.Principal{}, realtime.ErrForbidden
	}
	for _, t := range topics {
		if !known(t) {
			return realtime.Principal{}, realtime.ErrForbidden
		}
	}
	return realtime.Principal{
		User: string(by.Tenant) + "/" + by.Actor, Tenant: string(by.Tenant), Session: by.SessionID, APIToken: by.TokenID, Expires: by.ExpiresAt,
	}, nil
}
