package live

import (
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/outbox"
)

// Lending notifies of a change in the branch that the desk shows. Statistics are polled.
func (p *Publisher) Lending(tenant outbox.TenantID, c lending.Change) {
	if !c.Statistics {
		p.soon(pace{tenant, topicDesk}, 0)
	}
}
