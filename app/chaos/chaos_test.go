//go:build linux

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEverySeededBugIsTried compares the list here with the bugs that the build for them knows, and the faults that it names.
func TestEverySeededBugIsTried(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "outbox", "mutant", "on.go"))
	if err != nil {
		t.Fatal(err)
	}
	var known, tried []string
	for _, found := range regexp.MustCompile(`chosen == "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
		known = append(known, found[1])
	}
	for _, m := range mutants() {
		tried = append(tried, m.name)
		for _, name := range m.faults {
			if !slices.ContainsFunc(faults(), func(f fault) bool { return f.name == name }) {
				t.Errorf("%s names a fault %q, which there is not", m.name, name)
			}
		}
	}
	slices.Sort(known)
	slices.Sort(tried)
	if !slices.Equal(known, tried) {
		t.Errorf("the build knows %v; tried are %v", known, tried)
	}
}

// TestNotRunIsNotPassed: what could not be run is told as such, and a violation ends the proof with 1.
func TestNotRunIsNotPassed(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.add(outcome{Fault: "power-cut", Planned: 60, NotRun: "reflinked images: mount: permission denied"})
	r.add(outcome{Fault: "kill", Planned: 300, Cycles: 300, Fired: 299, Violations: []violation{{"loss", "message main/m-1 was acknowledged and is gone"}}, Beyond: 2})
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not run: reflinked images: mount: permission denied", "VIOLATION  kill  loss: message main/m-1", "3 violations; 1 faults were not run"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if r.Broken != 3 || r.NotRun != 1 {
		t.Errorf("%d broken, %d not run", r.Broken, r.NotRun)
	}
}

// newTestBed is a bed without a program: for the checks.
func newTestBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{machine: &machine{}, journals: t.TempDir(), bound: retryBound, destinations: standard(), loose: map[int]bool{}, letters: map[string]letter{}, seed: 1}
	var err error
	if b.ledger, err = newLedger(filepath.Join(b.journals, "commands.jsonl")); err != nil {
		t.Fatal(err)
	}
	if b.receiver, err = newReceiver(b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = b.receiver.close(), b.ledger.close() })
	for _, d := range b.destinations {
		if err := b.receiver.know(d, "whsec_c2VjcmV0"); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// history is what the checks are given.
type history struct {
	command  *command
	arrivals []*arrival
	rows     *rows
	delivery *row
	letters  map[string]letter
	front    *arrival // of the message before another in its ordering key
	audited  bool
}

// timeOut has the first attempt run out of time by the sender's clock, which began a moment before the request was seen, and the second come after a wait.
func (h *history) timeOut(wait time.Duration) {
	first, second := h.arrivals[0], h.arrivals[1]
	started := first.Began.Add(-15 * time.Millisecond)
	h.delivery.attempts[0].started, h.delivery.attempts[0].took = started, attemptTime
	first.Misdeed, first.Status, first.Answered, first.Ended = tooLate, 0, started.Add(attemptTime), started.Add(attemptTime)
	second.Began = started.Add(attemptTime + wait)
	second.Answered, second.Ended = second.Began, second.Began
}

// TestChecksFindWhatIsWrong gives the checks a small history, right and then wrong in one way after another.
func TestChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, test := range map[string]struct {
		change func(h *history)
		want   string // the invariant; empty: nothing is wrong
	}{
		"all well":        {func(*history) {}, ""},
		"lost":            {func(h *history) { delete(h.rows.messages, "other/m") }, "loss"},
		"document lost":   {func(h *history) { h.rows.documents = nil }, "loss"},
		"refused, stored": {func(h *history) { h.command.verdict = refused }, "atomicity"},
		"unresolved":      {func(h *history) { h.command.verdict = doubtful }, "answer"},
		"other bytes":     {func(h *history) { h.arrivals[1].SHA256 = "bb" }, "bytes"},
		"unknown id":      {func(h *history) { h.arrivals[1].ID = "m-2" }, "identity"},
		"unsigned":        {func(h *history) { h.arrivals[0].Signed = false }, "signature"},
		"stale fence":     {func(h *history) { h.arrivals[1].Fence = 5 }, "fence"},
		"same attempt":    {func(h *history) { h.arrivals[1].Attempt = 1 }, "attempts"},
		"too early":       {func(h *history) { h.arrivals[1].Began = began.Add(20 * time.Millisecond) }, "backoff"},
		"two at once":     {func(h *history) { h.arrivals[0].Ended = began.Add(time.Second) }, "lease"},
		"never accepted":  {func(h *history) { h.arrivals[1].Status = 500 }, "acceptance"},
		"under another fence": {func(h *history) {
			h.delivery.fence = 9
		}, "acceptance"},
		"accepted, again":   {func(h *history) { h.arrivals[0].Misdeed, h.arrivals[0].Status, h.delivery.attempts = "", 200, nil }, "acceptance"},
		"wrong class":       {func(h *history) { h.delivery.attempts[0].class = "rejected" }, "class"},
		"no delivery":       {func(h *history) { h.rows.deliveries = nil }, "deliveries"},
		"two deliveries":    {func(h *history) { h.rows.deliveries = append(h.rows.deliveries, h.delivery) }, "deliveries"},
		"left pending":      {func(h *history) { h.delivery.state = "pending" }, "delivery"},
		"over the bound":    {func(h *history) { h.delivery.charged = retryBound + 1 }, "bound"},
		"not sound":         {func(h *history) { h.rows.integrity = "row missing" }, "integrity"},
		"other tenant's":    {func(h *history) { h.arrivals[1].SHA256 = "cc" }, "tenants"},
		"other tenant's id": {func(h *history) { h.arrivals[1].ID, h.arrivals[1].SHA256 = "m-main", "dd" }, "identity"},
		"over by its rows": {func(h *history) {
			for n := range retryBound + 1 {
				h.delivery.attempts = append(h.delivery.attempts, attemptRow{attempt: n, fence: int64(100 + n), charged: true, class: "failed", started: began})
			}
		}, "bound"},
		"given up early": {func(h *history) { h.delivery.state, h.delivery.class = "dead-letter", "failed" }, "bound"},
		"before it was asked": {func(h *history) {
			h.arrivals[0].Asked, h.arrivals[0].Misdeed = askedWait, answer503Asked
			h.delivery.attempts[0].class = "throttled"
		}, "backoff"},
		"timed out, seen late": {func(h *history) { h.timeOut(85 * time.Millisecond) }, ""},
		"timed out, too early": {func(h *history) { h.timeOut(70 * time.Millisecond) }, "backoff"},
		"letter gone":          {func(h *history) { h.letters["9"] = letter{class: "rejected"} }, "dead letters"},
		"letter changed":       {func(h *history) { h.letters["1"] = letter{class: "rejected"} }, "dead letters"},
		"out of order":         {func(h *history) { h.front.Answered = began.Add(time.Hour) }, "order"},
		"without the front":    {func(h *history) { h.front.Status = 500 }, "order"},
		"not audited": {func(h *history) {
			h.audited = true
			h.rows.deliveries = append(h.rows.deliveries, &row{id: 50, message: "main/m", handler: "doom", state: "dispatched", fence: 9})
		}, "audit"},
		"audited twice": {func(h *history) {
			h.audited = true
			h.rows.deliveries = append(h.rows.deliveries, &row{id: 50, message: "main/m", handler: "doom", state: "dispatched", fence: 9, replays: 2})
		}, "audit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestBed(t)
			// The message of the history is the second of its ordering key; the first tenant has one of the same id.
			c := &command{tenant: otherTenant, key: "k", document: "k"}
			c.messages = []*message{{tenant: otherTenant, id: "m", kind: keyedType, sha256: "aa", orderKey: "key", place: 2}}
			before := &command{tenant: otherTenant, key: "j", document: "j"}
			before.messages = []*message{{tenant: otherTenant, id: "f", kind: keyedType, sha256: "ff", orderKey: "key", place: 1}}
			namesake := &command{tenant: mainTenant, key: "k", document: "k"}
			namesake.messages = []*message{{tenant: mainTenant, id: "m", kind: keyedType, sha256: "cc"}}
			for _, sent := range []*command{before, c, namesake} {
				b.ledger.send(sent)
				b.ledger.settle(sent, acknowledged)
			}
			h := &history{command: c, letters: b.letters, delivery: &row{id: 1, message: "other/m", handler: "elsewhere", state: "dispatched", attempt: 2, charged: 2, fence: 7,
				attempts: []attemptRow{{attempt: 1, fence: 5, charged: true, class: "failed", started: began}}}}
			h.rows = &rows{integrity: "ok", messages: map[string]string{"other/m": "aa", "other/f": "ff", "main/m": "cc"},
				documents:  map[string]bool{"other/orders/k": true, "other/orders/j": true, "main/orders/k": true},
				deliveries: []*row{h.delivery, {id: 2, message: "other/f", handler: "elsewhere", state: "dispatched", attempt: 1, charged: 1, fence: 3}}}
			h.front = &arrival{Boot: 1, Destination: "elsewhere", ID: "f", Kind: keyedType, Attempt: 1, Fence: 3, SHA256: "ff", Signed: true, Status: 200,
				Began: began.Add(-30 * time.Millisecond), Answered: began.Add(-20 * time.Millisecond), Ended: began.Add(-20 * time.Millisecond)}
			one := arrival{Boot: 1, Destination: "elsewhere", ID: "m", Kind: keyedType, Attempt: 1, Fence: 5, SHA256: "aa", Signed: true, Misdeed: answer500, Status: 500,
				Began: began, Answered: began.Add(time.Millisecond), Ended: began.Add(2 * time.Millisecond)}
			two := arrival{Boot: 1, Destination: "elsewhere", ID: "m", Kind: keyedType, Attempt: 2, Fence: 7, SHA256: "aa", Signed: true, Status: 200,
				Began: began.Add(200 * time.Millisecond), Answered: began.Add(201 * time.Millisecond), Ended: began.Add(202 * time.Millisecond)}
			h.arrivals = []*arrival{&one, &two}
			others := []*arrival{h.front}
			for i, name := range []string{"plain", "slow", "flaky"} {
				h.rows.deliveries = append(h.rows.deliveries, &row{id: int64(10 + i), message: "main/m", handler: name, state: "dispatched", attempt: 1, charged: 1, fence: 4})
				others = append(others, &arrival{Boot: 1, Destination: name, ID: "m", Kind: keyedType, Attempt: 1, Fence: 4, SHA256: "cc", Signed: true, Status: 200,
					Began: began, Answered: began, Ended: began})
			}
			test.change(h)
			b.audited = h.audited
			b.receiver.arrivals = append(others, h.arrivals...)
			b.judge(h.rows)
			if test.want == "" {
				if len(b.violations) > 0 {
					t.Errorf("found %v", b.violations)
				}
				return
			}
			if !slices.ContainsFunc(b.violations, func(v violation) bool { return v.Invariant == test.want }) {
				t.Errorf("found %v, not %s", b.violations, test.want)
			}
		})
	}
}

// TestMisdeeds looks at each misdeed as a client sees it.
func TestMisdeeds(t *testing.T) {
	t.Parallel()
	for m, want := range map[misdeed]int{"": 200, answer500: 500, answer503Asked: 503, answer429Asked: 429, answer408: 408, answer422: 422, redirect: 307, gone: 410,
		resetBefore: 0, resetAfter200: 200, resetAfter500: 500, drip: 200, late: 200, garbage: 0, handled500: 500, headerBomb: 0} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { perform(w, r, &arrival{Misdeed: m}) }))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			status := 0
			transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20}
			defer transport.CloseIdleConnections()
			if response, err := transport.RoundTrip(request); err == nil {
				status = response.StatusCode
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			if status != want {
				t.Errorf("%q is seen as %d, not %d", m, status, want)
			}
		})
	}
}

// TestEveryFaultGetsItsTurn: however much a fault would like to take, those behind it keep their part of the time.
func TestEveryFaultGetsItsTurn(t *testing.T) {
	t.Parallel()
	waiting := []*turn{
		{fault: fault{name: "greedy", seconds: 100}, planned: 300},
		{fault: fault{name: "slow", seconds: 50}, planned: 60},
		{fault: fault{name: "half done", seconds: 100}, planned: 10, outcome: outcome{Fired: 5}},
	}
	if got := share(10*time.Minute, waiting); got != 5*time.Minute {
		t.Errorf("the first of three gets %s", got)
	}
	if got := share(10*time.Minute, waiting[1:]); got != 5*time.Minute {
		t.Errorf("the first of two gets %s", got)
	}
	if got := share(time.Minute, waiting[2:]); got != time.Minute {
		t.Errorf("the last gets %s", got)
	}
	for _, f := range faults() {
		if f.cycles[normal] == 0 || f.seconds <= 0 {
			t.Errorf("%s has %d cycles and %v seconds in the normal profile", f.name, f.cycles[normal], f.seconds)
		}
	}
	for _, g := range goals {
		planned := 0
		for _, f := range faults() {
			if slices.Contains(g.faults, f.name) {
				planned += f.cycles[normal]
			}
		}
		if len(g.faults) > 0 && planned < g.Want {
			t.Errorf("%d %s are planned, %d wanted", planned, g.Name, g.Want)
		}
	}
}

// TestShortIsNotPassed: a number that was not reached, of a fault or of all together, is told and ends the proof with a code of its own.
func TestShortIsNotPassed(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.add(outcome{Fault: "kill", Planned: 300, Cycles: 250, Fired: 249, Short: "the time was up", Figures: map[string]int{"target faults": 7}})
	r.add(outcome{Fault: "power-cut", Planned: 60, NotRun: "reflinked images: no"})
	r.measure([]goal{{Name: "kills", Want: 300, faults: []string{"kill"}}, {Name: "power cuts", Want: 60, faults: []string{"power-cut"}}, {Name: "target faults", Want: 7}})
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SHORT (the time was up)", "SHORT    249 kills of 300", "not run  0 power cuts of 60", "reached  7 target faults of 7", "2 numbers were not reached"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if r.code() != exitShort {
		t.Errorf("the code is %d", r.code())
	}
}

// TestEndedByHandIsNotJudged: what is seen after somebody ended the proof is no violation.
func TestEndedByHandIsNotJudged(t *testing.T) {
	t.Parallel()
	b := newTestBed(t)
	b.violate("loss", "before")
	b.machine.stopped.Store(true)
	b.violate("recovery", "after")
	if len(b.violations) != 1 || b.violations[0].Sentence != "before" {
		t.Errorf("found %v", b.violations)
	}
}

// TestReadinessIsJudged: a start behind a crowd that takes too long is found; one with fewer pending says nothing.
func TestReadinessIsJudged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		took    time.Duration
		pending int64
		broken  bool
	}{{readyTime, crowded, false}, {readyTime + time.Millisecond, crowded, true}, {time.Minute, crowded - 1, false}} {
		b := newTestBed(t)
		b.judgeReadiness(test.took, test.pending)
		if got := len(b.violations) > 0; got != test.broken {
			t.Errorf("%s with %d pending: %v", test.took, test.pending, b.violations)
		}
	}
}

// TestTheApplicationsJournalIsRead: what the other program's journal says is what the model holds.
func TestTheApplicationsJournalIsRead(t *testing.T) {
	t.Parallel()
	b := newTestBed(t)
	a := &application{bed: b, journal: filepath.Join(t.TempDir(), "journal"), open: map[string]*command{}, places: map[string]int{}}
	begin := func(key string) string {
		return `{"what":"begin","key":"` + key + `","tenant":"main","number":1,"messages":[{"type":"order-placed","id":"` + key + `-0","ordering_key":"k","sha256":"aa"}]}` + "\n"
	}
	journal := begin("a") + `{"what":"committed","key":"a"}` + "\n" + begin("b") + `{"what":"rolled back","key":"b"}` + "\n" + begin("c") +
		`{"what":"committed","key":"c","resolved":true}` + "\n" + begin("d") + `{"what":"rolled back","key":"d","error":"database is locked"}` + "\n" + begin("e") + `{"what":"comm`
	if err := os.WriteFile(a.journal, []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	if committed, err := a.learn(); err != nil || committed != 2 {
		t.Fatalf("committed %d, %v", committed, err)
	}
	for key, want := range map[string]verdict{"a": acknowledged, "b": refused, "c": acknowledged, "d": refused, "e": doubtful} {
		if m := b.ledger.messages["main/"+key+"-0"]; m == nil || m.command.verdict != want {
			t.Errorf("%s is %+v, not %s", key, m, want)
		}
	}
	if first, second := b.ledger.messages["main/a-0"], b.ledger.messages["main/c-0"]; first.place != 1 || second.place != 2 {
		t.Errorf("places %d and %d", first.place, second.place)
	}
	if len(b.violations) != 1 || b.violations[0].Invariant != "application" {
		t.Errorf("found %v", b.violations)
	}
	if err := os.WriteFile(a.journal, []byte(journal+`itted","key":"e"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if committed, err := a.learn(); err != nil || committed != 1 {
		t.Errorf("the rest of the line: committed %d, %v", committed, err)
	}
}

// TestTheFirstAcceptanceCounts: a stale attempt that is answered after the one that replaced it delays nothing.
func TestTheFirstAcceptanceCounts(t *testing.T) {
	t.Parallel()
	began := time.Now()
	stale := &arrival{Status: 200, Began: began, Answered: began.Add(150 * time.Millisecond)}
	second := &arrival{Status: 200, Began: began.Add(100 * time.Millisecond), Answered: began.Add(101 * time.Millisecond)}
	if at, ever := (&trail{arrivals: []*arrival{stale, second}}).accepted(); !ever || !at.Equal(second.Answered) {
		t.Errorf("accepted %v after %s", ever, at.Sub(began))
	}
	if _, ever := (&trail{arrivals: []*arrival{{Status: 500, Began: began}}}).accepted(); ever {
		t.Error("a failure is an acceptance")
	}
}
