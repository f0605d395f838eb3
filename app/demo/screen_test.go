package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/sink"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	s := newScreen(Config{Out: &out, Now: func() time.Time { return at }})
	const id = "0195953b-7f00-7c4a-8d11-2a52f1a0c001"
	s.arrived(sink.Entry{ID: id, Type: "order-placed", Attempt: 1, Status: 503, Misbehaviour: "status 503"})
	s.staged(id, "order-placed") // seen already
	s.staged("b", "parcel-sent")
	s.arrived(sink.Entry{ID: id, Type: "order-placed", Attempt: 2, Status: 500, Handled: true})
	s.arrived(sink.Entry{ID: id, Type: "order-placed", Attempt: 3, Status: 200, Repeated: true})
	s.arrived(sink.Entry{ID: "b", Type: "parcel-sent", Attempt: 1, Status: 200, Handled: true, Misbehaviour: "delay 1.5s"})
	s.arrived(sink.Entry{Problem: "no signature matches", Type: "x\x1b[2J"})
	s.died(7, "signal: killed", time.Second)
	s.running(ready{PID: 8, URL: "http://127.0.0.1:7678"})
	s.summary(&backlog{Pending: 1}, false)
	s.summary(&backlog{Pending: 1}, false) // nothing happened
	want := `
12:00:00  staged     order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001
12:00:00  failing    order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001  attempt 1   answered 503
12:00:00  staged     parcel-sent         b
12:00:00  retried    order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001  attempt 2
12:00:00  failing    order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001  attempt 2   answered 500, but handled: it will come again
12:00:00  retried    order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001  attempt 3
12:00:00  delivered  order-placed        0195953b-7f00-7c4a-8d11-2a52f1a0c001  attempt 3   handled before: the repeat is suppressed
12:00:00  delivered  parcel-sent         b                                     attempt 1   delay 1.5s
12:00:00  refused    x` + "\uFFFD" + `[2J                                                                 no signature matches
12:00:00  ended      process 7: signal: killed; starts again in 1s
12:00:00  ready      process 8 answers on http://127.0.0.1:7678
12:00:00  ── 2 staged · 2 delivered · 2 failing · 2 retried · 1 pending · 0 dead letters · 1 restart
`
	if got := out.String(); got != want[1:] {
		t.Errorf("got:\n%s\nwant:%s", got, want)
	}
}

func TestScreenForgets(t *testing.T) {
	t.Parallel()
	s := newScreen(Config{Out: &bytes.Buffer{}, Now: time.Now})
	for range 2 {
		for i := range remembered + 10 {
			s.staged(itoa(i), "t")
		}
	}
	if len(s.known) != remembered || len(s.order) != remembered {
		t.Errorf("it remembers %d and %d messages, want %d", len(s.known), len(s.order), remembered)
	}
}

func TestCurlIsOneCommand(t *testing.T) {
	t.Parallel()
	curl := banner{URL: "http://127.0.0.1:7678", Token: "my data/it's/token"}.curl()
	if !strings.Contains(curl, `"Authorization: Bearer $(cat 'my data/it'\''s/token')"`) {
		t.Errorf("got %s", curl)
	}
}
