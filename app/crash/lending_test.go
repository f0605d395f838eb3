package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// branch is the lending branch in the real program.
type branch struct{ *program }

// act does one thing over the API; it may have been done already when the program was killed before it could answer.
func (b branch) act(path, body string, done ...string) []byte {
	b.t.Helper()
	status, text := b.call(http.MethodPost, path, body)
	for _, code := range done {
		if strings.Contains(string(text), `"code":"`+code+`"`) {
			return nil
		}
	}
	if status != http.StatusOK && status != http.StatusCreated {
		b.t.Fatalf("POST %s: status %d: %s", path, status, text)
	}
	return text
}

func (b branch) read(path string, into any) {
	b.t.Helper()
	if err := json.Unmarshal(b.must(http.StatusOK, http.MethodGet, path, ""), into); err != nil {
		b.t.Fatal(err)
	}
}

// reservation waits until the reservation is in a state, and may be killed while it waits.
func (b branch) reservation(id, state string) {
	b.t.Helper()
	var r struct{ State string }
	for range 1200 {
		if b.read("/v1/lending/reservations/"+id, &r); r.State == state {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.t.Fatalf("reservation is %s, want %s", r.State, state)
}

// TestAReservationIsFulfilledUnderKills goes from reserving to collecting, with kill -9 before, during and after each step.
func TestAReservationIsFulfilledUnderKills(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "lending: true\nsettings:\n  retry-first: {value: 100ms, observation: \"a test cannot wait for seconds\"}\n"+
		"  retry-attempts: {value: 100, observation: \"a kill charges what it interrupts\"}\n")
	b := branch{p}
	p.start()
	again := func() { p.kill(); p.start() }
	b.act("/v1/lending/members", `{"id":"m1","name":"Ada","email":"ada@example.org"}`)
	b.act("/v1/lending/members", `{"id":"m2","name":"Emil","email":"emil@example.org"}`)
	b.act("/v1/lending/copies", `{"id":"c1","work":"moby-dick","title":"Moby-Dick"}`)
	again()
	b.act("/v1/lending/loans", `{"member":"m1","copy":"c1"}`)
	again()
	var reserved struct{ ID string }
	if err := json.Unmarshal(b.act("/v1/lending/reservations", `{"member":"m2","work":"moby-dick"}`), &reserved); err != nil {
		t.Fatal(err)
	}
	again()
	// The answer, the steps and the notice race against kills that come sooner each time.
	b.act("/v1/lending/returns", `{"copy":"c1"}`)
	for wait := 40 * time.Millisecond; wait > 0; wait -= 8 * time.Millisecond {
		time.Sleep(wait)
		again()
	}
	b.reservation(reserved.ID, "ready")
	again()
	b.act("/v1/lending/reservations/"+reserved.ID+"/collect", "")
	again()
	b.reservation(reserved.ID, "collected")
	b.act("/v1/lending/reservations/"+reserved.ID+"/collect", "", "not-ready")
	p.settled()

	var statistics struct {
		Works []struct{ Borrowed, Returned int }
	}
	if b.read("/v1/lending/statistics", &statistics); len(statistics.Works) != 1 || statistics.Works[0].Borrowed != 2 || statistics.Works[0].Returned != 1 {
		t.Errorf("statistics: %+v", statistics.Works)
	}
	var loans struct{ Loans []struct{ Member string } }
	if b.read("/v1/lending/loans", &loans); len(loans.Loans) != 1 || loans.Loans[0].Member != "m2" {
		t.Errorf("loans: %+v", loans.Loans)
	}
	// A notice that was written before a kill could settle it comes again, under the same key.
	text, err := os.ReadFile(filepath.Join(p.dir, "files", "notices.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var n struct{ Key, To, Subject string }
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Errorf("notice: %v: %s", err, line)
			continue
		}
		if before, known := told[n.Key]; known && before != n.To+": "+n.Subject {
			t.Errorf("the key %s stands for two notices", n.Key)
		}
		told[n.Key] = n.To + ": " + n.Subject
	}
	want := map[string]int{"ada@example.org: Due: Moby-Dick": 1, "emil@example.org: Ready for you: Moby-Dick": 1, "emil@example.org: Due: Moby-Dick": 1}
	got := map[string]int{}
	for _, notice := range told {
		got[notice]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("notices: %v, want %v", got, want)
	}
}

// settled waits until nothing is pending but the one step that is scheduled, and what has no destination.
func (p *program) settled() {
	p.t.Helper()
	var said struct {
		Handlers []struct {
			Handler             string
			Pending, Processing int64
		}
	}
	open := int64(0)
	for range 1200 {
		if err := json.Unmarshal(p.must(http.StatusOK, http.MethodGet, "/v1/backlog", ""), &said); err != nil {
			p.t.Fatal(err)
		}
		open = 0
		for _, h := range said.Handlers {
			if strings.HasPrefix(h.Handler, "lending-") {
				open += h.Pending + h.Processing
			}
		}
		if open <= 1 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.t.Fatalf("%d deliveries are open", open)
}
