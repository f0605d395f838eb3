package live

import (
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// The topics of the lending branch.
const (
	topicDesk       realtime.Topic = "lending/desk"
	topicStatistics realtime.Topic = "lending/statistics"
)

func loanTopic(id string) realtime.Topic { return realtime.Topic("lending/loans/" + id) }

// Lending notifies of a change in the branch: of the loan, where there is one, and of the desk, which shows all of them.
func (p *Publisher) Lending(tenant outbox.TenantID, c lending.Change) {
	if c.Statistics {
		p.soon(pace{tenant, topicStatistics}, 0)
		return
	}
	if c.Loan != "" {
		p.publish(tenant, realtime.Notification{Topic: loanTopic(c.Loan), ID: c.Loan, Version: c.Version, Change: c.What, Freshness: realtime.Immediate()})
	}
	p.soon(pace{tenant, topicDesk}, 0)
}
