package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/access"
)

// cookie signs a browser in.
func (s *streaming) cookie() string {
	s.t.Helper()
	link, _ := s.sessions.Links.New(machine)
	answer := s.do(http.MethodPost, "/v1/session", `{"setup":"`+link+`"}`, "Content-Type", "application/json")
	if answer.StatusCode != http.StatusCreated {
		s.t.Fatalf("sign in: %s", answer.Status)
	}
	return strings.SplitN(answer.Header.Get("Set-Cookie"), ";", 2)[0]
}

// TestRefreshesOfASessionAreBounded: of one session no more queries run at once than the setting allows; the others wait, those for which there is
// no place to wait are told to come again, and nobody else notices (P48).
func TestRefreshesOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	s := newStreaming(t, `  live-refreshes: {value: 1, observation: "a test fills it with one"}
  body-limit: {value: 16MiB, observation: "a test needs an answer that no buffer takes"}
  payload-limit: {value: 16MiB, observation: "as body-limit"}
`)
	_, token := s.token(access.NewToken{Role: access.Operator})
	// More than the kernel takes of an answer that nobody reads.
	large := s.do(http.MethodPost, "/v1/transactions", `{"changes":[{"op":"put","collection":"large","id":"1","body":"`+strings.Repeat("x", 15<<20)+`"}]}`,
		"Authorization", "Bearer "+token, "Content-Type", "application/json")
	if text, _ := io.ReadAll(large.Body); large.StatusCode != http.StatusCreated {
		t.Fatalf("write a large document: %s: %.200s", large.Status, text)
	}
	mine, other := s.cookie(), s.cookie()
	// A query whose answer its client does not read is in flight for as long as the client likes.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := fmt.Fprintf(conn, "GET /v1/documents/large/1 HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", strings.TrimPrefix(s.url, "http://"), mine); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil { // it runs
		t.Fatal(err)
	}
	const waiting = 16
	answered := make(chan int, waiting+1)
	ask := func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/backlog", nil)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Cookie", mine)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			answered <- 0
			return
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Error("nothing says when to come again")
		}
		answered <- answer.StatusCode
	}
	for range waiting + 1 {
		go ask()
	}
	next := func() int {
		t.Helper()
		select {
		case status := <-answered:
			return status
		case <-time.After(time.Minute):
			t.Fatal("no answer came")
			return 0
		}
	}
	if status := next(); status != http.StatusTooManyRequests {
		t.Errorf("of %d queries beside the one that runs the first answer is %d, want that one is told to come again", waiting+1, status)
	}
	// The stream is not one of them, nor is anybody else's query.
	l := s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Cookie", mine)
	if l.StatusCode != http.StatusOK {
		t.Errorf("the stream of that session: %s", l.Status)
	}
	_ = l.Body.Close()
	for name, header := range map[string][]string{"another session": {"Cookie", other}, "a token": {"Authorization", "Bearer " + token}} {
		if answer := s.do(http.MethodGet, "/v1/backlog", "", header...); answer.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %s", name, answer.Status)
		}
	}
	select {
	case status := <-answered:
		t.Errorf("one that should have waited was answered %d", status)
	default:
	}
	_ = conn.Close()
	for range waiting {
		if status := next(); status != http.StatusOK {
			t.Errorf("one that waited was answered %d", status)
		}
	}
	s.connections(0)
}

// TestConnectionsOfAnAddressAreBounded: an address has its share, whoever asks from it; what a proxy says of its peer is believed of the proxies that the
// configuration names, and of nobody else.
func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proxies string
		second  int // what the second stream is answered, which says that it comes from elsewhere
	}{
		"no proxy is named":      {"", http.StatusTooManyRequests},
		"another proxy is named": {"proxies: [192.0.2.1]\n", http.StatusTooManyRequests},
		"the proxy is named":     {"proxies: [127.0.0.1]\n", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := parseConfig("posthorn.yaml", []byte(c.proxies+"settings:\n  live-connections-address: {value: 1, observation: \"a test opens few\"}\n"))
			if err != nil {
				t.Fatal(err)
			}
			s := newStreamingWith(t, t.TempDir(), config)
			_, one := s.token(access.NewToken{Role: access.Viewer})
			_, two := s.token(access.NewToken{Role: access.Viewer})
			from := func(token, address string) *http.Response {
				return s.do(http.MethodGet, "/v1/events?topic=backlog", "", "Authorization", "Bearer "+token, "X-Forwarded-For", address)
			}
			first := from(one, "198.51.100.7")
			if first.StatusCode != http.StatusOK {
				t.Fatalf("the first: %s", first.Status)
			}
			s.connections(1)
			second := from(two, "203.0.113.9")
			if second.StatusCode != c.second {
				t.Errorf("from elsewhere, as the proxy says: %s, want %d", second.Status, c.second)
			}
			// What the client itself has written before the proxy's own entry counts for nothing.
			third := from(two, "203.0.113.77, 198.51.100.7")
			text, _ := io.ReadAll(third.Body)
			if third.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), "connections-exhausted-address") {
				t.Errorf("from the same address with a made-up one before it: %s: %s", third.Status, text)
			}
			_, _ = first.Body.Close(), second.Body.Close()
			s.connections(0)
		})
	}
}
