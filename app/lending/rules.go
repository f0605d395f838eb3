package lending

import (
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/records"
)

// Rules are the numbers that the branch lends by; each is a setting record.
type Rules struct {
	// LoanPeriod is how long a copy is lent, and renewed.
	LoanPeriod time.Duration
	// LoanLimit is how many copies a member may have at once.
	LoanLimit int
	// RenewalLimit is how often a loan may be renewed.
	RenewalLimit int
	// OverdueGrace is how long after its due time a loan keeps its member from borrowing more.
	OverdueGrace time.Duration
	// ReservationLimit is how many reservations a member may have open.
	ReservationLimit int
	// PickupTime is how long a copy is held for whom it was reserved.
	PickupTime time.Duration
}

func rulesOf(set *records.Set) Rules {
	return Rules{
		LoanPeriod: set.Duration("lending-loan-period"), LoanLimit: set.Int("lending-loan-limit"), RenewalLimit: set.Int("lending-renewal-limit"),
		OverdueGrace: set.Duration("lending-overdue-grace"), ReservationLimit: set.Int("lending-reservation-limit"), PickupTime: set.Duration("lending-pickup-time"),
	}
}

// account is what the rules ask of a member.
type account struct {
	suspended bool
	loans     int       // open ones
	oldestDue time.Time // of the open loans; zero without any
	reserved  int       // open reservations
}

// queue is what the rules ask of a work: how many of its copies stand on the shelf, and how many members wait for one. Those who are
// suspended do not count, since nothing is held for them.
type queue struct{ free, waiting int }

// unclaimed is how many copies on the shelf nobody waits for. What somebody waits for is about to be held.
func (q queue) unclaimed() int { return q.free - q.waiting }

// mayBorrow judges the member.
func (r Rules) mayBorrow(now time.Time, a account) error {
	switch {
	case a.suspended:
		return errSuspended
	case a.loans >= r.LoanLimit:
		return refuse("loan-limit", fmt.Sprintf("The member has %d loans, as many as are allowed.", a.loans), "Return one first; the setting lending-loan-limit is the bound.")
	case a.loans > 0 && now.Sub(a.oldestDue) > r.OverdueGrace:
		return refuse("overdue", "The member has a loan that is overdue.", "Return or renew it first.")
	}
	return nil
}

// mayTake judges a copy that a member wants to borrow: own says that it is held for this member.
func mayTake(state string, own bool, q queue) error {
	switch {
	case state == onLoan:
		return refuse("copy-on-loan", "The copy is on loan.", "Return it first, or reserve the work.")
	case state == held && !own:
		return refuse("copy-held", "The copy is held for another member.", "Reserve the work to be next.")
	case state == onShelf && q.unclaimed() < 1:
		return refuse("copy-reserved", "Members wait for this work, and the copy is about to be held for the first of them.", "Reserve the work to be next.")
	}
	return nil
}

// renewed is the new due time of a loan.
func (r Rules) renewed(now, due time.Time, renewals int, a account, q queue) (time.Time, error) {
	switch {
	case a.suspended:
		return due, errSuspended
	case renewals >= r.RenewalLimit:
		return due, refuse("renewal-limit", fmt.Sprintf("The loan was renewed %d times, as often as is allowed.", renewals), "Return the copy; the setting lending-renewal-limit is the bound.")
	case now.Sub(due) > r.OverdueGrace:
		return due, refuse("overdue", "The loan is overdue.", "Return the copy.")
	case q.waiting > 0:
		return due, refuse("work-reserved", "Other members wait for this work.", "Return the copy in time.")
	}
	// A renewal never makes a loan shorter.
	if next := now.Add(r.LoanPeriod); next.After(due) {
		due = next
	}
	return due, nil
}

// mayReserve judges a reservation: has says that the member has reserved or borrowed the work already.
func (r Rules) mayReserve(a account, q queue, reserved, borrowed bool) error {
	switch {
	case a.suspended:
		return errSuspended
	case reserved:
		return refuse("already-reserved", "The member has reserved this work already.", "")
	case borrowed:
		return refuse("already-borrowed", "The member has a copy of this work.", "Renew the loan.")
	case a.reserved >= r.ReservationLimit:
		return refuse("reservation-limit", fmt.Sprintf("The member has %d reservations, as many as are allowed.", a.reserved), "Cancel one first; the setting lending-reservation-limit is the bound.")
	case q.unclaimed() > 0:
		return refuse("copy-available", "A copy stands on the shelf.", "Borrow it.")
	}
	return nil
}

// overdue reports whether an open loan is past its time.
func overdue(now, due time.Time, returned bool) bool { return !returned && now.After(due) }
