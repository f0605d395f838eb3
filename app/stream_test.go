package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/realtime"
)

// streaming is an appliance that answers on the network, seen from inside.
type streaming struct {
	*serving
	t    *testing.T
	url  string
	told int64
}

func newStreaming(t *testing.T, settings string) *streaming {
	t.Helper()
	config, err := parseConfig("posthorn.yaml", []byte("settings:\n"+settings))
	if err != nil {
		t.Fatal(err)
	}
	return newStreamingWith(t, t.TempDir(), config)
}

// newStreamingWith is newStreaming on a folder and a configuration.
func newStreamingWith(t *testing.T, dir string, config Config) *streaming {
	t.Helper()
	options := testOptions(t, dir)
	options.Config, options.Logger = config, nil
	a := open(t, options)
	s := &streaming{t: t, serving: &serving{Appliance: a, failed: make(chan error, 2)}}
	ready, err := s.listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = ready.URL
	t.Cleanup(func() {
		if err := s.end(context.Background()); err != nil {
			t.Errorf("end: %v", err)
		}
		if n := s.hub.Stats().Connections; n != 0 {
			t.Errorf("%d connections are counted after the end", n)
		}
	})
	return s
}

// machine is the machine's own user, who may make tokens for any tenant.
var machine = access.Principal{Actor: "os:root", Tenant: outbox.MainTenant, Role: access.Admin}

// token makes an API token.
func (s *streaming) token(n access.NewToken) (access.Token, string) {
	s.t.Helper()
	token, text, err := s.tokens.Create(s.t.Context(), machine, n)
	if err != nil {
		s.t.Fatal(err)
	}
	return token, text
}

// tell publishes the next version of each message, as a commit does.
func (s *streaming) tell(ids ...string) {
	s.t.Helper()
	s.told++
	for _, id := range ids {
		if err := s.hub.Publish(string(outbox.MainTenant), realtime.Notification{Topic: realtime.Topic("messages/" + id), ID: id, Version: s.told, Change: "changed", Freshness: realtime.Immediate()}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// stage posts a message, whose id it gives.
func (s *streaming) stage(token, id string) {
	s.t.Helper()
	answer := s.do(http.MethodPost, "/v1/transactions", `{"emits":[{"type":"parcel-sent","id":"`+id+`","payload":{"parcel":"P-1","carrier":"north","sent_at":"2026-11-29T12:00:00Z"}}]}`, "Authorization", "Bearer "+token, "Content-Type", "application/json")
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusCreated {
		s.t.Fatalf("transaction: %s: %s", answer.Status, text)
	}
}

// do makes a request on a connection of its own. Its body is closed with the test.
func (s *streaming) do(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// listener reads a stream as it comes.
type listener struct {
	body io.Closer

	mu     sync.Mutex
	events map[string]int // how many of each name
	newest map[realtime.Topic]int64
	said   string // the data of the last bye or reset
	ended  bool
}

// listen opens a stream and waits until it is greeted.
func (s *streaming) listenTo(token, query string, headers ...string) *listener {
	s.t.Helper()
	answer := s.do(http.MethodGet, "/v1/events?"+query, "", append([]string{"Authorization", "Bearer " + token}, headers...)...)
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("listen: %s: %s", answer.Status, text)
	}
	l := &listener{body: answer.Body, events: map[string]int{}, newest: map[realtime.Topic]int64{}}
	go l.read(answer.Body)
	eventually(s.t, "hello", func() bool { return l.heard("hello") == 1 })
	return l
}

func (l *listener) read(body io.Reader) {
	event, data := "", ""
	for lines := bufio.NewScanner(body); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			event = value
		case "data":
			data = value
		case "":
			if event != "" {
				l.take(event, data)
			}
			event, data = "", ""
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *listener) take(event, data string) {
	var n struct {
		Topic   realtime.Topic
		Version int64
	}
	_ = json.Unmarshal([]byte(data), &n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[event]++
	switch event {
	case "notification":
		l.newest[n.Topic] = max(l.newest[n.Topic], n.Version)
	case "bye", "reset":
		l.said = data
	}
}

func (l *listener) heard(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[event]
}

func (l *listener) version(topic realtime.Topic) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[topic]
}

func (l *listener) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// connections waits until so many are counted.
func (s *streaming) connections(want int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d live connections", want), func() bool { return s.hub.Stats().Connections == want })
}

// TestStreamRefusals: what is asked for wrongly is answered clearly, and those who listen meanwhile notice nothing.
func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, "")
	_, good := s.token(access.NewToken{Role: access.Operator})
	revoked, bad := s.token(access.NewToken{Role: access.Admin})
	if _, err := s.tokens.Revoke(t.Context(), machine, false, revoked.ID); err != nil {
		t.Fatal(err)
	}
	healthy := s.listenTo(good, "topic=messages/1&topic=backlog")
	bearer := []string{"Authorization", "Bearer " + good}
	many := strings.Repeat("topic=messages/a&", 2)
	for i := range 33 {
		many += fmt.Sprintf("topic=messages/%d&", i)
	}
	for name, c := range map[string]struct {
		method, query, body string
		headers             []string
		status              int
		code                string
	}{
		"no credential":        {query: "topic=backlog", status: 401, code: "unauthenticated"},
		"a wrong token":        {query: "topic=backlog", headers: []string{"Authorization", "Bearer ph_x"}, status: 401, code: "unauthenticated"},
		"a revoked token":      {query: "topic=backlog", headers: []string{"Authorization", "Bearer " + bad}, status: 401, code: "unauthenticated"},
		"a token in the URL":   {query: "topic=backlog&token=" + good, status: 401, code: "unauthenticated"},
		"a wrong cookie":       {query: "topic=backlog", headers: []string{"Cookie", "posthorn=x"}, status: 401, code: "unauthenticated"},
		"an unknown topic":     {query: "topic=weather", headers: bearer, status: 403, code: "topic-forbidden"},
		"one unknown of two":   {query: "topic=backlog&topic=loans/1", headers: bearer, status: 403, code: "topic-forbidden"},
		"a topic of old":       {query: "topic=documents/orders/1", headers: bearer, status: 403, code: "topic-forbidden"},
		"a part of a topic":    {query: "topic=lending", headers: bearer, status: 403, code: "topic-forbidden"},
		"a pattern":            {query: "topic=messages/*", headers: bearer, status: 400, code: "topic-invalid"},
		"an empty topic":       {query: "topic=", headers: bearer, status: 400, code: "topic-invalid"},
		"a newline in a topic": {query: "topic=messages/a%0Ab", headers: bearer, status: 400, code: "topic-invalid"},
		"a long topic":         {query: "topic=messages/" + strings.Repeat("a", 300), headers: bearer, status: 400, code: "topic-too-long"},
		"no topic":             {headers: bearer, status: 400, code: "topic-missing"},
		"too many topics":      {query: many, headers: bearer, status: 400, code: "topics-too-many"},
		"another parameter":    {query: "topic=backlog&tenants=other", headers: bearer, status: 400, code: "parameter-unknown"},
		"another tenant":       {query: "topic=backlog&tenant=other", headers: bearer, status: 403, code: "forbidden"},
		"no URL encoding":      {query: "topic=%zz", headers: bearer, status: 400, code: "query-malformed"},
		"a large request":      {query: "topic=backlog", headers: append([]string{"X-Large", strings.Repeat("x", 20<<10)}, bearer...), status: 431, code: "request-too-large"},
		"a body":               {query: "topic=backlog", body: "{}", headers: bearer, status: 400, code: "body-not-allowed"},
		"another media type":   {query: "topic=backlog", headers: append([]string{"Accept", "application/json"}, bearer...), status: 406, code: "not-acceptable"},
		"POST":                 {method: http.MethodPost, query: "topic=backlog", headers: bearer, status: 405, code: "method-not-allowed"},
		"DELETE":               {method: http.MethodDelete, query: "topic=backlog", headers: bearer, status: 405, code: "method-not-allowed"},
		"HEAD":                 {method: http.MethodHead, query: "topic=backlog", headers: bearer, status: 405},
	} {
		if c.method == "" {
			c.method = http.MethodGet
		}
		answer := s.do(c.method, "/v1/events?"+c.query, c.body, c.headers...)
		text, _ := io.ReadAll(answer.Body)
		var problem struct{ Code, Detail string }
		_ = json.Unmarshal(text, &problem)
		if answer.StatusCode != c.status || problem.Code != c.code || c.code != "" && problem.Detail == "" {
			t.Errorf("%s: %s %s, want %d %s", name, answer.Status, text, c.status, c.code)
		}
		if c.status == 405 && answer.Header.Get("Allow") != "GET" {
			t.Errorf("%s: Allow is %q", name, answer.Header.Get("Allow"))
		}
		if c.status == 401 && answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: nothing says how to authenticate", name)
		}
	}
	s.tell("1")
	eventually(t, "the one who listened still hears", func() bool { return healthy.version("messages/1") == 1 })
	if s.hub.Stats().Connections != 1 {
		t.Errorf("%d connections, want the healthy one alone", s.hub.Stats().Connections)
	}
	_ = healthy.body.Close()
	s.connections(0)
}

// TestStreamPlaces: a place in the stream that means nothing here is answered by a reset, never by an error.
func TestStreamPlaces(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, "")
	_, token := s.token(access.NewToken{Role: access.Viewer})
	epoch := s.hub.Stats().Epoch
	for _, place := range []string{"garbage", "-", epoch, epoch + "-", epoch + "-x", epoch + "--1", epoch + "-99999999999999999999999", epoch + "-1000", "0123456789abcdef-1",
		strings.Repeat("9", 4000), "\x80\xff", "1-1-1"} {
		l := s.listenTo(token, "topic=backlog", "Last-Event-ID", place)
		eventually(t, "a reset for "+place, func() bool { return l.heard("reset") == 1 })
		_ = l.body.Close()
	}
	// One that is right is answered without.
	l := s.listenTo(token, "topic=backlog", "Last-Event-ID", epoch+"-0")
	if l.heard("reset") != 0 {
		t.Error("a good place was answered by a reset")
	}
	_ = l.body.Close()
	s.connections(0)
}

// TestStreamOfAnotherTenant: a topic is inside the tenant of whoever listens, so the same name means another's resource to nobody.
func TestStreamOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, "")
	_, ours := s.token(access.NewToken{Role: access.Operator})
	_, theirs := s.token(access.NewToken{Role: access.Operator, Tenant: "other"})
	here, there := s.listenTo(ours, "topic=messages/m-1"), s.listenTo(theirs, "topic=messages/m-1")
	s.told = 1 << 40 // later than any commit
	s.stage(ours, "m-1")
	eventually(t, "our own change", func() bool { return here.heard("notification") > 0 })
	for range 3 {
		s.tell("m-1")
	}
	eventually(t, "our own changes", func() bool { return here.version("messages/m-1") == s.told })
	before := here.heard("notification")
	s.stage(theirs, "m-1")
	eventually(t, "their own change", func() bool { return there.heard("notification") > 0 })
	if n := there.version("messages/m-1"); n == s.told {
		t.Error("another tenant heard ours")
	}
	if n := here.heard("notification"); n != before {
		t.Errorf("we heard %d notifications of another tenant", n-before)
	}
	_, _ = here.body.Close(), there.body.Close()
	s.connections(0)
}

// TestStreamEndsWithAccess: revocation and log-out end streams at once, expiry and what only the store knows at the next check; nobody else is
// disturbed.
func TestStreamEndsWithAccess(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, `  live-revalidation: {value: 1s, observation: "a test cannot wait for a minute"}
`)
	_, healthyToken := s.token(access.NewToken{Role: access.Operator})
	token, text := s.token(access.NewToken{Role: access.Viewer})
	_, short := s.token(access.NewToken{Role: access.Viewer, ExpiresAt: time.Now().Add(2 * time.Second)})
	healthy, revoked, expiring := s.listenTo(healthyToken, "topic=backlog"), s.listenTo(text, "topic=backlog"), s.listenTo(short, "topic=backlog")
	cookie := func() string {
		link, _ := s.sessions.Links.New(machine)
		answer := s.do(http.MethodPost, "/v1/session", `{"setup":"`+link+`"}`, "Content-Type", "application/json")
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("sign in: %s", answer.Status)
		}
		return strings.SplitN(answer.Header.Get("Set-Cookie"), ";", 2)[0]
	}
	byCookie := func(cookie string) *listener {
		answer := s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Cookie", cookie)
		l := &listener{body: answer.Body, events: map[string]int{}, newest: map[realtime.Topic]int64{}}
		go l.read(answer.Body)
		eventually(t, "hello", func() bool { return l.heard("hello") == 1 })
		return l
	}
	here, there, stale := cookie(), cookie(), cookie()
	atHere, atThere, atStale := byCookie(here), byCookie(there), byCookie(stale)
	s.connections(6)

	if _, err := s.tokens.Revoke(t.Context(), machine, false, token.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the revoked token's stream", revoked.over)
	if answer := s.do(http.MethodDelete, "/v1/session", "", "Cookie", there); answer.StatusCode != http.StatusNoContent {
		t.Errorf("sign out: %s", answer.Status)
	}
	eventually(t, "the end of the stream of who signed out", atThere.over)
	// As time does it, without anybody saying so.
	err := s.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		_, err := tx.Tx.Tx.ExecContext(ctx, `UPDATE posthorn_sessions SET expires_at = 1 WHERE created_at = (SELECT max(created_at) FROM posthorn_sessions)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the expired session's stream", atStale.over)
	eventually(t, "the end of the expired token's stream", expiring.over)
	if answer := s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Cookie", stale); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("an expired session is answered %s", answer.Status)
	}
	if answer := s.do(http.MethodDelete, "/v1/session/others", "", "Cookie", here); answer.StatusCode != http.StatusOK {
		t.Errorf("sign out elsewhere: %s", answer.Status)
	}
	s.connections(2)
	if healthy.over() || atHere.over() {
		t.Error("a stream that nobody ended has ended")
	}
	closed := s.hub.Stats().Closed
	if closed["revoked"] != 1 || closed["signed-out"] != 1 || closed[realtime.ReasonExpired] != 2 {
		t.Errorf("closed by reason: %v", closed)
	}
	for l, reason := range map[*listener]string{revoked: "revoked", atThere: "signed-out", atStale: realtime.ReasonExpired, expiring: realtime.ReasonExpired} {
		if want := `{"reason":"` + reason + `"}`; l.heard("bye") != 1 || l.said != want {
			t.Errorf("a stream ended with %d byes, %s; want %s", l.heard("bye"), l.said, want)
		}
	}
	_, _ = healthy.body.Close(), atHere.body.Close()
	s.connections(0)
}

// TestStreamCapacity: whoever comes beyond the bound is told when to come again, in the words that its kind understands; those inside stay.
func TestStreamCapacity(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, `  live-connections: {value: 5, observation: "a test opens few"}
  live-connections-user: {value: 3, observation: "a test opens few"}
`)
	_, one := s.token(access.NewToken{Role: access.Operator})
	_, two := s.token(access.NewToken{Role: access.Viewer})
	_, three := s.token(access.NewToken{Role: access.Viewer})
	var inside []*listener
	for range 3 {
		inside = append(inside, s.listenTo(one, "topic=messages/1"))
	}
	refused := func(token, code string) {
		t.Helper()
		answer := s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Authorization", "Bearer "+token)
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), `"`+code+`"`) {
			t.Errorf("a program: %s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), text)
		}
		answer = s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Authorization", "Bearer "+token, "Accept", "text/event-stream", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin")
		text, _ = io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "retry: ") || !strings.Contains(string(text), code) {
			t.Errorf("a browser: %s: %s", answer.Status, text)
		}
	}
	refused(one, "connections-exhausted-user")
	for range 2 {
		inside = append(inside, s.listenTo(two, "topic=messages/1"))
	}
	refused(three, "connections-exhausted")
	s.tell("1")
	for _, l := range inside {
		eventually(t, "those inside hear", func() bool { return l.version("messages/1") == 1 })
	}
	_ = inside[0].body.Close()
	s.connections(4)
	inside = append(inside[1:], s.listenTo(three, "topic=backlog"))
	for _, l := range inside {
		_ = l.body.Close()
	}
	s.connections(0)
}

// TestStreamHungClients: clients that take nothing are got rid of, and those that do get the newest of everything meanwhile.
func TestStreamHungClients(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, `  live-client-timeout: {value: 1s, observation: "a test cannot wait for long"}
  live-heartbeat: {value: 500ms, observation: "not above the time-out"}
  live-connections-user: {value: 100, observation: "a test is one user"}
`)
	_, token := s.token(access.NewToken{Role: access.Operator})
	const topics, hung, rounds = 30, 20, 60
	var ids []string
	query := ""
	for i := range topics {
		ids = append(ids, fmt.Sprint(i))
		query += fmt.Sprintf("topic=messages/%d&", i)
	}
	healthy := []*listener{s.listenTo(token, query), s.listenTo(token, query), s.listenTo(token, query)}
	for range hung {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := fmt.Fprintf(conn, "GET /v1/events?%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", query, token); err != nil {
			t.Fatal(err)
		}
	}
	s.connections(len(healthy) + hung)
	for range rounds {
		s.tell(ids...)
	}
	for i, l := range healthy {
		for _, id := range ids {
			topic := realtime.Topic("messages/" + id)
			eventually(t, fmt.Sprintf("the newest of %s for client %d", topic, i), func() bool { return l.version(topic) == rounds })
		}
	}
	eventually(t, "the end of every hung client", func() bool {
		s.tell(ids...) // whatever the kernel still took
		return s.hub.Stats().Closed[realtime.ReasonLagging] == hung
	})
	s.connections(len(healthy))
	for _, l := range healthy {
		if l.over() {
			t.Error("a healthy client was closed")
		}
		_ = l.body.Close()
	}
	s.connections(0)
	if stats := s.hub.Stats(); stats.Queued != 0 || stats.Topics != 0 || len(stats.ByUser) != 0 {
		t.Errorf("something is left: %+v", stats)
	}
}
