//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// trail is everything that arrived of one message at one destination, in order.
type trail struct {
	destination destination
	message     *message
	arrivals    []*arrival
}

// check holds the receiver's journal and the database against the model. The program has ended.
func (b *bed) check() error {
	r, err := readRows(context.Background(), b.database(), b.journals, b.application != nil, b.machine.keep)
	if err != nil {
		return err
	}
	b.judge(r)
	return nil
}

// judge runs every check.
func (b *bed) judge(r *rows) {
	if r.integrity != "ok" {
		b.violate("integrity", "quick_check: %s", r.integrity)
	}
	trails := b.trails()
	b.checkCommands(r, trails)
	b.checkTrails(r, trails)
	b.checkDeliveries(r, trails)
	b.checkOrder(trails)
	b.checkLetters(r)
	b.checkAudit(r)
}

// trails sorts the arrivals, and finds those that nobody sent, that carry other bytes, that cross tenants.
func (b *bed) trails() map[string]*trail {
	trails := map[string]*trail{}
	b.receiver.mu.Lock()
	defer b.receiver.mu.Unlock()
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, a := range b.receiver.arrivals {
		d := b.receiver.destinations[a.Destination]
		m := b.ledger.messages[d.tenant+"/"+a.ID]
		switch {
		case m == nil:
			b.violate("identity", "%s received %q (attempt %d), an id that tenant %s never sent", a.Destination, a.ID, a.Attempt, d.tenant)
			continue
		case m.command.verdict == refused:
			b.violate("atomicity", "%s received %s of command %s, which was refused", a.Destination, m.name(), m.command.key)
		case m.flipped > 0 && a.Boot > m.flipped:
			b.violate("bytes", "%s received %s although its stored bytes had changed", a.Destination, m.name())
		case a.SHA256 != m.sha256:
			other := b.ledger.messages[otherOf(d.tenant)+"/"+a.ID]
			if other != nil && other.sha256 == a.SHA256 {
				b.violate("tenants", "%s of tenant %s received the bytes of %s", a.Destination, d.tenant, other.name())
			} else {
				b.violate("bytes", "%s received %s with other bytes in attempt %d (fence %d)", a.Destination, m.name(), a.Attempt, a.Fence)
			}
		}
		if !a.Signed {
			b.violate("signature", "%s received %s without a good signature", a.Destination, m.name())
		}
		if a.Kind != m.kind {
			b.violate("identity", "%s received %s as %q", a.Destination, m.name(), a.Kind)
		}
		name := a.Destination + " " + m.name()
		if trails[name] == nil {
			trails[name] = &trail{destination: d, message: m}
		}
		trails[name].arrivals = append(trails[name].arrivals, a)
	}
	return trails
}

func otherOf(tenant string) string {
	if tenant == mainTenant {
		return otherTenant
	}
	return mainTenant
}

// handlersOf lists the destinations that a message must reach.
func (b *bed) handlersOf(m *message) []destination {
	var to []destination
	for _, d := range b.destinations {
		if fits, _ := path.Match(d.types, m.kind); fits && d.tenant == m.tenant {
			to = append(to, d)
		}
	}
	return to
}

// checkCommands: what was acknowledged is there, whole; what was refused is not, not even in part.
func (b *bed) checkCommands(r *rows, trails map[string]*trail) {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, c := range b.ledger.commands {
		document := r.documents[c.tenant+"/orders/"+c.document]
		switch c.verdict {
		case doubtful:
			b.violate("answer", "command %s of tenant %s was never resolved", c.key, c.tenant)
			continue
		case acknowledged:
			if !document {
				b.violate("loss", "document %s of tenant %s was acknowledged (boot %d) and is gone", c.document, c.tenant, c.boot)
			}
		case refused:
			if document {
				b.violate("atomicity", "document %s of tenant %s is there, though its command was refused", c.document, c.tenant)
			}
		}
		for _, m := range c.messages {
			sum, found := r.messages[m.name()]
			switch {
			case c.verdict == acknowledged && !found && b.purging && b.acceptedByAll(m, trails):
				// It was dispatched, and retention took it.
			case c.verdict == acknowledged && !found:
				b.violate("loss", "message %s was acknowledged (boot %d) and is gone", m.name(), c.boot)
			case c.verdict == refused && found:
				b.violate("atomicity", "message %s is there, though its command was refused", m.name())
			case found && sum != m.sha256 && m.flipped == 0:
				b.violate("bytes", "message %s is stored with other bytes", m.name())
			}
		}
	}
	for name := range r.messages {
		if b.ledger.messages[name] == nil {
			b.violate("identity", "message %s is stored, but was never sent", name)
		}
	}
}

// acceptedByAll says whether every destination of a message has accepted it.
func (b *bed) acceptedByAll(m *message, trails map[string]*trail) bool {
	for _, to := range b.handlersOf(m) {
		t := trails[to.name+" "+m.name()]
		if t == nil || !slices.ContainsFunc(t.arrivals, func(a *arrival) bool { return a.Status == 200 }) {
			return false
		}
	}
	return true
}

// checkTrails: fences and attempts strictly rise, at most one attempt is open, and what was accepted does not come again without a cause.
func (b *bed) checkTrails(r *rows, trails map[string]*trail) {
	timedOut := map[string]bool{}
	for _, d := range r.deliveries {
		for _, f := range d.attempts {
			if f.timedOut() {
				timedOut[fmt.Sprint(d.handler, " ", d.message, " ", f.fence)] = true
			}
		}
	}
	for name, t := range trails {
		slices.SortStableFunc(t.arrivals, func(x, y *arrival) int { return x.Began.Compare(y.Began) })
		for i, a := range t.arrivals[1:] {
			before := t.arrivals[i]
			if a.Fence <= before.Fence {
				b.violate("fence", "%s: fence %d came after %d", name, a.Fence, before.Fence)
			}
			if a.Attempt <= before.Attempt {
				b.violate("attempts", "%s: attempt %d came after attempt %d", name, a.Attempt, before.Attempt)
			}
			if a.Boot != before.Boot || b.loose[a.Boot] {
				continue
			}
			if a.Began.Before(before.Ended) && a.Began.Sub(before.Began) < leaseTime-100*time.Millisecond {
				b.violate("lease", "%s: attempt %d began %s after attempt %d, which was still open", name, a.Attempt, a.Began.Sub(before.Began), before.Attempt)
			}
			if accepting[before.Misdeed] && before.Status == 200 && !timedOut[fmt.Sprint(name, " ", before.Fence)] {
				b.violate("acceptance", "%s: attempt %d (%s) was answered 200 after %s and came again", name, before.Attempt, before.Misdeed, before.Answered.Sub(before.Began))
			}
		}
	}
}

// checkDeliveries: every acknowledged message has one delivery for each handler, each in the state that the journal bears out.
func (b *bed) checkDeliveries(r *rows, trails map[string]*trail) {
	have := map[string]*row{}
	for _, d := range r.deliveries {
		name := d.handler + " " + d.message
		if have[name] != nil && d.resendOf == 0 {
			b.violate("deliveries", "%s has two deliveries", name)
		}
		have[name] = d
		t := trails[name]
		b.checkState(name, d, t)
		if d.charged > b.bound {
			b.violate("bound", "%s was charged %d attempts of %d", name, d.charged, b.bound)
		}
		if t != nil {
			b.checkBackoff(name, d, t)
		}
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, m := range b.ledger.messages {
		if m.command.verdict != acknowledged {
			continue
		}
		for _, to := range b.handlersOf(m) {
			if have[to.name+" "+m.name()] == nil && r.messages[m.name()] != "" {
				b.violate("deliveries", "%s has no delivery for %s", m.name(), to.name)
			}
		}
	}
}

func (b *bed) checkState(name string, d *row, t *trail) {
	var arrivals []*arrival
	if t != nil {
		arrivals = t.arrivals
	}
	for _, a := range arrivals {
		if a.Fence > d.fence || a.Attempt > d.attempt {
			b.violate("attempts", "%s: attempt %d (fence %d) was sent, but only %d (fence %d) is stored", name, a.Attempt, a.Fence, d.attempt, d.fence)
		}
	}
	endless := slices.ContainsFunc(b.destinations, func(e destination) bool { return e.name == d.handler && e.endless })
	switch d.state {
	case "dispatched":
		accepted := slices.ContainsFunc(arrivals, func(a *arrival) bool {
			return a.Fence == d.fence && (a.Status == 200 || a.Misdeed == informational || a.Misdeed == headerBomb)
		})
		if !accepted {
			b.violate("acceptance", "%s is dispatched under fence %d, which its target did not answer with 2xx", name, d.fence)
		}
	case "dead-letter":
		if d.class == "interrupted" && !strings.Contains(d.message, poison) {
			b.violate("bound", "%s is a dead letter because crashes interrupted it, which were another message's fault", name)
		}
		if d.class != "rejected" && d.class != "corrupt" && d.class != "gone" && d.class != "cancelled" && d.class != "skipped" && d.charged < b.bound {
			b.violate("bound", "%s is a dead letter of class %s after %d of %d charged attempts: %s", name, d.class, d.charged, b.bound, d.failure)
		}
	case "pending":
		if !endless {
			b.violate("delivery", "%s is still pending after the drain", name)
		}
	default:
		b.violate("delivery", "%s is %s after the program ended in good order", name, d.state)
	}
	if endless && d.state != "pending" {
		b.violate("acceptance", "%s is %s, though nobody can have accepted it", name, d.state)
	}
}

// leastWait is the shortest delay after so many charged attempts.
func leastWait(charged int) time.Duration {
	wait := float64(retryFirst) * math.Pow(2, float64(max(0, charged-1)))
	return time.Duration(min(wait, float64(retryCap)) * (1 - retryJitter))
}

// slack is how much earlier than its backoff an attempt may arrive: times are stored in microseconds.
const slack = 2 * time.Millisecond

// checkBackoff: no attempt came before its backoff, each failure is filed under the class that its target earned, and no more were charged than
// the bound. A failure that was never settled, since the process was killed, has no row and no backoff.
func (b *bed) checkBackoff(name string, d *row, t *trail) {
	byFence := map[int64]*arrival{}
	for _, a := range t.arrivals {
		byFence[a.Fence] = a
	}
	slices.SortFunc(d.attempts, func(x, y attemptRow) int { return cmp.Compare(x.fence, y.fence) })
	charged := 0
	for _, f := range d.attempts {
		if f.started.After(d.lastReplay) && f.charged {
			charged++
		}
		a := byFence[f.fence]
		if a == nil || f.class == "interrupted" || b.loose[a.Boot] {
			continue
		}
		if want := classes[a.Misdeed]; want != f.class && !f.timedOut() {
			b.violate("class", "%s: attempt %d met %q and was filed as %s", name, f.attempt, a.Misdeed, f.class)
		}
		least := leastWait(charged)
		switch {
		case a.Asked > 0:
			least = a.Asked
		case f.class == "throttled":
			least = leastWait(1) // it is counted by attempts
		case f.class == "unreachable":
			least = 0 // the lane's breaker may know earlier that the target is back
		}
		if i := slices.IndexFunc(t.arrivals, func(x *arrival) bool { return x.Fence > f.fence }); i >= 0 && d.replays == 0 {
			from := a.Answered
			if a.Misdeed == tooLate || f.timedOut() {
				// Its time was up by the sender's clock, which began before the request was seen here.
				from = a.Began.Add(attemptTime)
				if ended := f.started.Add(f.took); ended.Before(from) {
					from = ended
				}
			}
			if early := from.Add(least).Sub(t.arrivals[i].Began); early > slack {
				b.violate("backoff", "%s: attempt %d came %s before its backoff of %s after %q", name, t.arrivals[i].Attempt, early, least, a.Misdeed)
			}
		}
	}
	if charged > b.bound {
		b.violate("bound", "%s has %d charged attempts of %d", name, charged, b.bound)
	}
}

// accepted is when a message was first accepted. An attempt that has outlived its lease may be answered later than the one after it.
func (t *trail) accepted() (at time.Time, ever bool) {
	for _, a := range t.arrivals {
		if (a.Status == 200 || a.Misdeed == informational) && (!ever || a.Answered.Before(at)) {
			at, ever = a.Answered, true
		}
	}
	return at, ever
}

// checkOrder: a message of an ordering key does not leave before the one in front of it was accepted.
func (b *bed) checkOrder(trails map[string]*trail) {
	b.ledger.mu.Lock()
	queues := map[string][]*message{}
	for _, c := range b.ledger.commands {
		if c.verdict != acknowledged {
			continue
		}
		for _, m := range c.messages {
			if m.orderKey != "" {
				for _, d := range b.handlersOf(m) {
					queues[d.name+" "+m.orderKey] = append(queues[d.name+" "+m.orderKey], m)
				}
			}
		}
	}
	b.ledger.mu.Unlock()
	for name, queue := range queues {
		handler, _, _ := cutSpace(name)
		slices.SortFunc(queue, func(x, y *message) int { return cmp.Compare(x.place, y.place) })
		for i, m := range queue[1:] {
			front, here := trails[handler+" "+queue[i].name()], trails[handler+" "+m.name()]
			if here == nil || queue[i].flipped > 0 {
				continue
			}
			if front == nil {
				b.violate("order", "%s: %s arrived, %s before it never did", name, m.name(), queue[i].name())
				continue
			}
			if accepted, ever := front.accepted(); !ever || here.arrivals[0].Began.Before(accepted) {
				b.violate("order", "%s: %s arrived before %s was accepted", name, m.name(), queue[i].name())
			}
		}
	}
}

// letter is a dead letter as it was once seen.
type letter struct {
	class, failure string
	attempts       int
	completed      int64
}

// checkLetters: a dead letter stays as it was until somebody replays it.
func (b *bed) checkLetters(r *rows) {
	now := map[string]*row{}
	for _, d := range r.deliveries {
		now[fmt.Sprint(d.id)] = d
	}
	b.mu.Lock()
	letters := b.letters
	b.mu.Unlock()
	for id, l := range letters {
		d := now[id]
		switch {
		case d == nil:
			b.violate("dead letters", "dead letter %s is gone", id)
		case d.replays == 0 && (d.state != "dead-letter" || d.class != l.class || d.failure != l.failure || d.attempt != l.attempts || d.completed != l.completed):
			b.violate("dead letters", "dead letter %s of %s changed without a replay", id, d.message)
		}
	}
}
