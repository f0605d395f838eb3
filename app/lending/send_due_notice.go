package lending

import (
	"context"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
)

var reminding = mediator.UseCase{Record: "reactions/send-due-notice", Runs: []string{effectNotice}}

// sendDueNotice is what the due notice takes from loan-borrowed.
type sendDueNotice struct {
	Member string    `json:"member"`
	Title  string    `json:"title"`
	DueAt  time.Time `json:"due_at"`
}

// UseCase implements mediator.Described.
func (sendDueNotice) UseCase() mediator.UseCase { return reminding }

// Validate implements mediator.Command.
func (s sendDueNotice) Validate() error {
	var f form
	return f.number("/member", s.Member).refusal()
}

// Authorize implements mediator.Command.
func (sendDueNotice) Authorize(by access.Principal) error { return by.Require(access.Operator) }

func (m *Module) sendDueNotice(ctx context.Context, work *mediator.UnitOfWork, c sendDueNotice) (nothing, error) {
	return nothing{}, m.tell(ctx, work, "due", c.Member, c.Title, c.DueAt)
}
