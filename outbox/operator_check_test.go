package outbox

import (
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"
)

// check holds everything that is stored, and counted, against the model.
func (s *operators) check() {
	time.Sleep(countEvery + time.Millisecond)
	synctest.Wait()
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	if len(faults) > 0 {
		s.rt.Fatal(faults)
	}
	rows := s.rows()
	have, again := map[HandlerName]int{}, 0
	for _, r := range rows {
		was, old := s.before[r.id]
		switch {
		case old && was.state == StateDispatched && r != was:
			s.rt.Fatalf("a dispatched delivery has changed: %+v, was %+v", r, was)
		case old && was.state == StateDeadLetter && r.state != StateDeadLetter && !s.replayed[r.id]:
			s.rt.Fatalf("a dead letter came back by itself: %+v", r)
		case old && (r.attempt < was.attempt || r.fence < was.fence):
			s.rt.Fatalf("attempts and fences only rise: %+v, was %+v", r, was)
		case r.charged > 3:
			s.rt.Fatalf("charged beyond the bound: %+v", r)
		}
		if r.again {
			again++
		} else {
			have[r.handler]++
		}
	}
	for id := range s.before {
		if _, kept := rows[id]; !kept {
			s.rt.Fatalf("delivery %d is lost", id)
		}
	}
	if !maps.Equal(have, s.expected) || again != s.resent {
		s.rt.Fatalf("deliveries: %v and %d sent again; want %v and %d", have, again, s.expected, s.resent)
	}
	s.checkOrder(rows)
	s.before = rows
	clear(s.replayed)
	if differs := s.b.miscounted(s.t, s.d); differs != "" {
		s.rt.Fatal(differs)
	}
	s.checkAudit()
}

// checkOrder: of the deliveries that keep the order of a key the first one can be claimed, and only it.
func (s *operators) checkOrder(rows map[DeliveryID]simRow) {
	first := map[string]int64{}
	key := func(r simRow) string { return fmt.Sprintf("%s/%s/%s", r.handler, r.tenant, r.key) }
	for _, r := range rows {
		if seq, found := first[key(r)]; r.blocks && (!found || r.seq < seq) {
			first[key(r)] = r.seq
		}
	}
	for _, r := range rows {
		if r.blocked != (r.state == StatePending && r.blocks && r.seq != first[key(r)]) {
			s.rt.Fatalf("the first that keeps the order is message %d: %+v", first[key(r)], r)
		}
	}
}

// checkAudit: one row for each replay, with the failure that it answers (P34).
func (s *operators) checkAudit() {
	rows, err := s.b.read.DB.Query(`SELECT delivery, failure FROM outbox_replays ORDER BY id`)
	if err != nil {
		s.rt.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	got := map[DeliveryID][]string{}
	for rows.Next() {
		var id DeliveryID
		var failure string
		if err := rows.Scan(&id, &failure); err != nil {
			s.rt.Fatal(err)
		}
		got[id] = append(got[id], failure)
	}
	if !maps.EqualFunc(got, s.audits, slices.Equal) {
		s.rt.Fatalf("audited are %v, replayed were %v", got, s.audits)
	}
}

// end lets everything through: what is delivered then is what was never lost.
func (s *operators) end() {
	if !s.known[simRemovable] {
		s.bringBack()
	}
	for _, name := range simHandlers {
		s.hold(name, false)
	}
	s.mu.Lock()
	s.mended = true
	s.mu.Unlock()
	// A dead letter that is passed over while another waits behind it can die only once more, in a crash; there is none any more.
	for range 2 {
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, tenant := range []TenantID{MainTenant, "far"} {
			s.replayMany(s.rows(), DeadLetters{Tenant: tenant}, false)
		}
	}
	time.Sleep(time.Minute)
	s.check()
	for _, r := range s.rows() {
		if r.state != StateDispatched {
			s.rt.Fatalf("not delivered in the end: %+v", r)
		}
	}
	var effects, messages int
	if err := s.b.read.DB.QueryRow(`SELECT (SELECT count(*) FROM effects), (SELECT count(DISTINCT seq) FROM outbox_deliveries WHERE handler = ?)`, string(simInTx)).
		Scan(&effects, &messages); err != nil || effects != messages {
		s.rt.Fatalf("%d effects of %d messages: %v", effects, messages, err)
	}
}
