package lending

import (
	"context"
	"encoding/json"
	"time"

	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
)

// Who may borrow is decided outside, by whoever keeps the members' accounts, and comes in as an event.
var (
	suspending  = mediator.UseCase{Record: "use-cases/suspend-a-member"}
	reinstating = mediator.UseCase{Record: "use-cases/reinstate-a-member", Runs: []string{stepHold}}
)

// Receivers are the inbound events of the branch.
func (m *Module) Receivers() map[string]inbound.Receiver {
	return map[string]inbound.Receiver{
		eventSuspended:  {UseCase: suspending, Versions: []int{1}, Receive: m.suspend},
		eventReinstated: {UseCase: reinstating, Versions: []int{1}, Receive: m.reinstate},
	}
}

// standingChanged is the payload of both events.
type standingChanged struct {
	Member string    `json:"member"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (m *Module) suspend(ctx context.Context, work *mediator.UnitOfWork, e inbound.Event) (inbound.Outcome, error) {
	_, outcome, err := m.stand(ctx, work, e, true)
	return outcome, err
}

const selectFreeForMember = `SELECT min(c.id), c.work FROM lending_reservations r JOIN lending_copies c ON c.tenant = r.tenant AND c.work = r.work AND c.state = 'shelf'
WHERE r.tenant = ? AND r.member = ? AND r.state = 'waiting' GROUP BY c.work`

// reinstate also takes up the member's place in the queues again: copies that stand on the shelf are offered.
func (m *Module) reinstate(ctx context.Context, work *mediator.UnitOfWork, e inbound.Event) (inbound.Outcome, error) {
	member, outcome, err := m.stand(ctx, work, e, false)
	if err != nil || outcome != inbound.Applied {
		return outcome, err
	}
	stmt, err := work.Stmt(ctx, selectFreeForMember)
	if err != nil {
		return "", err
	}
	rows, err := stmt.QueryContext(ctx, string(work.By.Tenant), member)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, of string
		if err := rows.Scan(&id, &of); err != nil {
			return "", err
		}
		if err := m.run(work, kindStep, stepHold, never, HoldCopy{Copy: id}); err != nil {
			return "", err
		}
	}
	return outcome, rows.Err()
}

const (
	selectStanding = `SELECT standing_at FROM lending_members WHERE tenant = ? AND id = ?`
	updateStanding = `UPDATE lending_members SET suspended = ?, standing_at = ?, standing_note = ? WHERE tenant = ? AND id = ?`
	noteStanding   = `UPDATE lending_members SET standing_note = ? WHERE tenant = ? AND id = ?`
)

// stand changes a member's standing as far as the event's trust goes. Events may overtake each other: the one that was decided last stays.
func (m *Module) stand(ctx context.Context, work *mediator.UnitOfWork, e inbound.Event, suspended bool) (string, inbound.Outcome, error) {
	var s standingChanged
	if err := json.Unmarshal(e.Data, &s); err != nil {
		return "", "", errUnreadablePayload
	}
	tenant := string(work.By.Tenant)
	var since int64
	ok, err := find(ctx, work, "read standing", selectStanding, []any{tenant, s.Member}, &since)
	switch {
	case err != nil:
		return "", "", err
	case !ok:
		return "", "", missing("unknown-member", "There is no such member.")
	case microsOf(s.At) <= since:
		return s.Member, inbound.Outdated, nil
	}
	if e.Trust != records.Authoritative {
		_, err := exec(ctx, work, "note standing", noteStanding, e.Source+" says "+e.Type+": "+s.Reason, tenant, s.Member)
		m.changed(work, Change{What: e.Type})
		return s.Member, inbound.Noted, err
	}
	_, err = exec(ctx, work, "change standing", updateStanding, suspended, microsOf(s.At), s.Reason, tenant, s.Member)
	m.changed(work, Change{What: e.Type})
	return s.Member, inbound.Applied, err
}
