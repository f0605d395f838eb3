package api_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/session"
	"github.com/posthorn/posthorn/app/store"
)

// TestBodiesShareTheirMemory has one caller hold back the end of its body: what would pass the bound meanwhile is refused, what anybody may
// send has a bound of its own, and all is as before when the slow one has gone.
func TestBodiesShareTheirMemory(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, func(db *store.Store, d *api.Deps) {
		if err := d.Records().Override(map[string]records.Override{"bodies-limit": {Value: "8KiB", Observation: "a small board"}}); err != nil {
			t.Fatal(err)
		}
		d.Sessions = session.New(session.Config{Writer: db.Writer, Read: db.Read, Tokens: d.Tokens})
	})
	event := `{"type":"order-placed","payload":{"order":1}}` + strings.Repeat(" ", 4096)
	if a := b.post(t, "/v1/messages", event); a.status != 201 {
		t.Fatalf("alone: %d %s", a.status, a.body)
	}
	slow, refused := b.sendSlowly(t)
	deadline := time.Now().Add(time.Minute)
	a := b.post(t, "/v1/messages", event)
	for a.status != 503 {
		select {
		case <-refused: // one of these was being read when it came
			slow, refused = b.sendSlowly(t)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("beside a slow body: %d %s", a.status, a.body)
		}
		a = b.post(t, "/v1/messages", event)
	}
	if p := a.problem(t); p.Code != "bodies-full" || a.header.Get("Retry-After") == "" {
		t.Errorf("beside a slow body: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", "POST", "/v1/session", `{"token":"`+strings.Repeat("x", 3000)+`"}`); a.status != 401 {
		t.Errorf("a proof beside a slow body: %d %s", a.status, a.body)
	}
	if a := b.send(t, "", "POST", "/v1/session", `{"token":"`+strings.Repeat("x", 5000)+`"}`); a.status != 413 {
		t.Errorf("a proof that is too large: %d %s", a.status, a.body)
	}
	slow.Close()
	for a.status != 201 {
		if time.Now().After(deadline) {
			t.Fatalf("after a slow body: %d %s", a.status, a.body)
		}
		a = b.post(t, "/v1/messages", event)
	}
}

// sendSlowly sends all but the end of a body of 8,000 bytes. The channel is closed when the connection ends.
func (b *bed) sendSlowly(t *testing.T) (net.Conn, <-chan struct{}) {
	t.Helper()
	conn, err := net.Dial("tcp", b.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-ended })
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn)
	}()
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 8000\r\n\r\n%s",
		b.tokens[access.Viewer], strings.Repeat(" ", 7000))
	return conn, ended
}
