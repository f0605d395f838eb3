package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/cli/client"
)

// echo answers what it got, and refuses what it is told to.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/refuse":
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"type":"about:blank","title":"No","status":422,"code":"undeclared","detail":"It is not declared.","hint":"Declare it.","errors":[{"path":"/emits/0/type","message":"is unknown"}]}`)
	case "/proxy":
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>")
	case "/busy":
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"title":"Busy"}`)
	case "/elsewhere":
		http.Redirect(w, r, "/echo", http.StatusFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{
			"method": r.Method, "uri": r.RequestURI, "body": string(body), "type": r.Header.Get("Content-Type"),
			"authorization": r.Header.Get("Authorization"), "key": r.Header.Get("Idempotency-Key"),
		})
	}
}

// transports runs a test over each way to a server.
func transports(t *testing.T, run func(t *testing.T, c *client.Client)) {
	t.Helper()
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		closed := false
		c := client.InProcess(http.HandlerFunc(echo), func() error { closed = true; return nil })
		run(t, c)
		if err := c.Close(); err != nil || !closed {
			t.Errorf("closing: %v, handler closed: %v", err, closed)
		}
	})
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		socket := filepath.Join(t.TempDir(), "s")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(echo)}
		go server.Serve(listener)
		t.Cleanup(func() { server.Close() })
		c := client.Unix(socket)
		defer c.Close()
		run(t, c)
	})
	t.Run("remote", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(echo))
		t.Cleanup(server.Close)
		c, err := client.Remote(server.URL+"/", "ph_secret")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		run(t, c)
	})
}

func TestDo(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, c *client.Client) {
		var got map[string]string
		if err := c.Once("k1").Do(t.Context(), http.MethodPost, "/v1/messages?a=b%2Fc", json.RawMessage(`{"n": 1.0}`), &got); err != nil {
			t.Fatal(err)
		}
		if got["method"] != "POST" || got["uri"] != "/v1/messages?a=b%2Fc" || got["body"] != `{"n": 1.0}` || got["type"] != "application/json" || got["key"] != "k1" {
			t.Errorf("the server got %v", got)
		}
		if err := c.Do(t.Context(), http.MethodGet, "/x", nil, &got); err != nil || got["body"] != "" || got["key"] != "" {
			t.Errorf("a request without a body and a key: %v, %v", got, err)
		}
		if c.Where() != "the data folder" && !strings.HasPrefix(c.Where(), "/") && got["authorization"] != "Bearer ph_secret" {
			t.Errorf("the token did not arrive: %v", got)
		}
	})
}

func TestProblem(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, c *client.Client) {
		err := c.Do(t.Context(), http.MethodPost, "/refuse", nil, nil)
		problem := new(client.Problem)
		if !errors.As(err, &problem) || problem.Status != 422 || problem.Code != "undeclared" || problem.Hint() != "Declare it." ||
			problem.Error() != "It is not declared.\n  /emits/0/type: is unknown" {
			t.Errorf("got %+v", err)
		}
		if err := c.Do(t.Context(), http.MethodGet, "/proxy", nil, nil); !errors.As(err, &problem) || problem.Status != 502 || !strings.Contains(err.Error(), "502") {
			t.Errorf("an answer that is no problem: %v", err)
		}
		if err := c.Do(t.Context(), http.MethodGet, "/busy", nil, nil); !errors.As(err, &problem) || problem.Hint() != "try again in 3 s" {
			t.Errorf("a full queue: %v", err)
		}
		if err := c.Do(t.Context(), http.MethodGet, "/elsewhere", nil, nil); !errors.As(err, &problem) || problem.Status != 302 {
			t.Errorf("a redirect was followed: %v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c := client.Unix(filepath.Join(t.TempDir(), "nobody"))
	err := c.Do(t.Context(), http.MethodGet, "/", nil, nil)
	if unreachable := new(client.Unreachable); !errors.As(err, &unreachable) || unreachable.Hint() == "" || strings.Contains(err.Error(), "localhost") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Do(ended, http.MethodGet, "/", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request says %v", err)
	}
}

func TestRemoteRefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost:7678", "ftp://h", "http://", "http://u:p@h", "http://h:x", "://"} {
		if _, err := client.Remote(address, ""); !errors.Is(err, client.ErrBadURL) {
			t.Errorf("%q: %v", address, err)
		}
	}
}
