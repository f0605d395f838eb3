package live

import (
	"strings"

	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// The topics that there are: one for each notification record whose decision is live, under the record's name for it. What a record decides to
// poll has none. Each is scoped to the tenant of whoever listens.
const (
	topicBacklog realtime.Topic = "backlog"
	topicMessage realtime.Topic = "messages/{id}"
	topicDesk    realtime.Topic = "lending/desk"
)

// Topics lists them.
func Topics() []realtime.Topic { return []realtime.Topic{topicBacklog, topicMessage, topicDesk} }

func messageTopic(id outbox.MessageID) realtime.Topic {
	return realtime.Topic("messages/" + string(id))
}

// known reports whether there is such a topic. Whether its resource exists is not asked: it may be about to, and an answer would tell.
func known(t realtime.Topic) bool {
	if t == topicBacklog || t == topicDesk {
		return true
	}
	id, found := strings.CutPrefix(string(t), "messages/")
	return found && outbox.ValidID(id)
}
