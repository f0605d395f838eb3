package crash_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/sink"
)

const kills = 50

// ledger is what this side knows of each message it tried to stage.
type ledger struct {
	mu           sync.Mutex
	acknowledged map[string]string // id → SHA-256 of the payload
	unanswered   map[string]string // the connection broke: it may be there, or not
	refused      map[string]bool
}

// TestNothingIsLostByKill kills the program under load, again and again, and holds the receiver's journal against what was acknowledged.
func TestNothingIsLostByKill(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "received.jsonl")
	receiver, err := sink.New(sink.Config{Journal: journal, Misbehaviour: sink.Misbehaviour{Rate: 0.05, Status: http.StatusServiceUnavailable}})
	if err != nil {
		t.Fatal(err)
	}
	target := httptest.NewServer(receiver)
	defer target.Close()
	defer func() { _ = receiver.Close() }()

	p := newProgram(t, `
egress:
  allow: ["127.0.0.0/8"]
settings:
  retry-first: {value: 100ms, observation: "a test cannot wait for seconds"}
  retry-attempts: {value: 100, observation: "a kill charges what it interrupts"}
`)
	p.start()
	created := p.must(http.StatusCreated, http.MethodPost, "/v1/destinations",
		fmt.Sprintf(`{"name":"receiver","kind":"webhook","url":%q,"types":["order-*"]}`, target.URL))
	var destination struct{ Secret string }
	if err := json.Unmarshal(created, &destination); err != nil || destination.Secret == "" {
		t.Fatalf("no secret in %s", created)
	}
	if err := receiver.SetSecrets(destination.Secret); err != nil {
		t.Fatal(err)
	}
	p.must(http.StatusCreated, http.MethodPost, "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"taken","body":{}}]}`)

	l := &ledger{acknowledged: map[string]string{}, unanswered: map[string]string{}, refused: map[string]bool{}}
	var number atomic.Int64
	for range kills {
		stop := make(chan struct{})
		var load sync.WaitGroup
		for range 8 {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.send(p, number.Add(1))
					}
				}
			})
		}
		time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
		_ = p.cmd.Process.Kill() // in the middle of whatever it is doing
		close(stop)
		load.Wait()
		p.kill()
		p.start()
	}
	p.delivered()
	l.check(t, journal)
}

// send stages one message; every fifth in a transaction that must be refused, since its document exists.
func (l *ledger) send(p *program, n int64) {
	id := fmt.Sprintf("m-%d", n)
	// Numbers, spaces and escapes that would not survive being read and written again.
	payload := fmt.Sprintf(`{"n": %d, "big":12345678901234567890123,"tiny":1.0e-400, "text":"\u00e4\/" }`, n)
	sum := sha256.Sum256([]byte(payload))
	refuse := n%5 == 0
	change := fmt.Sprintf(`{"op":"put","collection":"orders","id":"%d","body":{"n":%d}}`, n, n)
	if refuse {
		change += `,{"op":"put","collection":"orders","id":"taken","body":{},"if_version":0}`
		l.mu.Lock()
		l.refused[id] = true
		l.mu.Unlock()
	}
	status, text := p.call(http.MethodPost, "/v1/transactions", fmt.Sprintf(
		`{"changes":[%s],"emits":[{"type":"order-placed","id":%q,"payload":%s,"ordering_key":"k%d"}]}`, change, id, payload, n%7))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status == http.StatusCreated && !refuse:
		l.acknowledged[id] = hex.EncodeToString(sum[:])
	case status == 0 && !refuse:
		l.unanswered[id] = hex.EncodeToString(sum[:])
	case status == 0, status == http.StatusConflict && refuse:
	case status == http.StatusServiceUnavailable:
		l.refused[id] = true
	default:
		p.t.Errorf("message %s: status %d: %s", id, status, text)
	}
}

func (l *ledger) check(t *testing.T, journal string) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	handled := map[string]int{}
	fences := map[string]int64{}
	repeated := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e sink.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("journal: %v: %s", err, lines.Text())
		}
		want := l.acknowledged[e.ID]
		if want == "" {
			want = l.unanswered[e.ID]
		}
		switch {
		case l.refused[e.ID]:
			t.Errorf("%s was received, though its transaction was refused", e.ID)
		case want == "":
			t.Errorf("%s was received, but never sent", e.ID)
		case want != e.SHA256:
			t.Errorf("%s arrived with other bytes", e.ID)
		case !e.Verified:
			t.Errorf("%s arrived without a good signature: %s", e.ID, e.Problem)
		}
		if e.Fence < fences[e.ID] {
			t.Errorf("%s: fence %d after %d", e.ID, e.Fence, fences[e.ID])
		}
		fences[e.ID] = e.Fence
		if e.Handled {
			handled[e.ID]++
		}
		if e.Repeated {
			repeated++
		}
	}
	for id := range l.acknowledged {
		if handled[id] != 1 {
			t.Errorf("%s was acknowledged and handled %d times", id, handled[id])
		}
	}
	t.Logf("%d kills: %d acknowledged, %d unanswered, %d refused; %d handled, %d repeats suppressed",
		kills, len(l.acknowledged), len(l.unanswered), len(l.refused), len(handled), repeated)
	if len(l.acknowledged) < kills {
		t.Errorf("only %d messages were acknowledged: the load did not run", len(l.acknowledged))
	}
}
