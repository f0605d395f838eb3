package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// received is one request as a target saw it.
type received struct {
	header http.Header
	body   []byte
	method string
	proto  string
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	var got received
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = received{header: r.Header, body: body, method: r.Method}
	}))
	defer server.Close()
	now := time.Unix(1_782_907_200, 900_000_000)
	current, previous, ended := GenerateSecret(), GenerateSecret(), GenerateSecret()
	previous.NotAfter, ended.NotAfter = now.Add(time.Hour), now
	w := register(t, Config{
		URL: server.URL + "/hook?x=1", Secrets: []Secret{current, previous, ended}, Version: "1.2.3", Now: func() time.Time { return now },
	})
	// Bytes that a re-encoding would change.
	d := orderPlaced(" {\"n\":1.10, \"n\":1e400,\"é\":\"\\u00e9\"}\n")
	if err := w.Deliver(t.Context(), d); err != nil {
		t.Fatalf("deliver: %v", err)
	}

	if got.method != http.MethodPost || string(got.body) != string(d.Message.Payload) {
		t.Errorf("%s %q", got.method, got.body)
	}
	for name, want := range map[string]string{
		"webhook-id": "0198c0de-0000-7000-8000-000000000001", "webhook-timestamp": "1782907200", "posthorn-attempt": "3", "posthorn-fence": "4294967299",
		"posthorn-type": "order-placed", "posthorn-schema-version": "2", "traceparent": d.Message.Headers["traceparent"],
		"content-type": "application/json", "user-agent": "Posthorn/1.2.3", "content-length": strconv.Itoa(len(d.Message.Payload)), "accept-encoding": "", "correlation": "",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	signatures := strings.Split(got.header.Get("webhook-signature"), " ")
	if len(signatures) != 2 {
		t.Fatalf("signatures: %q", signatures)
	}
	for i, secret := range []Secret{current, previous} {
		mac := hmac.New(sha256.New, secret.key)
		mac.Write([]byte("0198c0de-0000-7000-8000-000000000001.1782907200."))
		mac.Write(d.Message.Payload)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); signatures[i] != want {
			t.Errorf("signature %d: %s, want %s", i, signatures[i], want)
		}
		verifier, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatalf("new verifier: %v", err)
		}
		if err := verifier.VerifyIgnoringTimestamp(got.body, got.header); err != nil {
			t.Errorf("the library refuses signature %d: %v", i, err)
		}
	}
}

func TestEmptyAndBinaryPayloads(t *testing.T) {
	t.Parallel()
	var got received
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = received{header: r.Header, body: body}
	}))
	defer server.Close()
	w := register(t, Config{URL: server.URL})
	for _, payload := range []string{"", "\x00\xff\xfe", "plain"} {
		d := orderPlaced(payload)
		d.Message.ContentType, d.Message.Headers = "application/x-thing; v=1", map[string]string{"traceparent": "junk\r\nX-Evil: 1"}
		if err := w.Deliver(t.Context(), d); err != nil {
			t.Fatalf("deliver %q: %v", payload, err)
		}
		if string(got.body) != payload || got.header.Get("Content-Type") != "application/x-thing; v=1" || got.header.Get("Content-Length") != strconv.Itoa(len(payload)) {
			t.Errorf("%q arrived as %q, %v", payload, got.body, got.header)
		}
		if got.header.Get("traceparent") != "" {
			t.Error("a traceparent that is none was sent")
		}
	}
	d := orderPlaced("{}")
	d.Message.ContentType = "text/plain\r\nX-Evil: 1"
	if failure := wantFailure(t, w.Deliver(t.Context(), d), "rejected"); strings.Contains(failure.Error(), "Evil") {
		t.Errorf("the error repeats the value: %v", failure)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("posthorn-attempt"), "1") {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = w.Write(make([]byte, 32<<10))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	w := register(t, Config{URL: server.URL, Concurrency: 4})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 20 {
				d := orderPlaced("{}")
				d.Attempt = worker*20 + i
				_ = w.Deliver(t.Context(), d)
			}
		})
	}
	wg.Wait()
	// A connection that is returned while another is being opened makes one too many; eighty would be one for each delivery.
	if n := opened.Load(); n > 20 {
		t.Errorf("%d connections for 80 deliveries at a concurrency of 4", n)
	}
}

func TestHTTP2AndTLS(t *testing.T) {
	t.Parallel()
	var got received
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = received{body: body, proto: r.Proto}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w := register(t, Config{URL: server.URL, RootCAs: roots})
	if err := w.Deliver(t.Context(), orderPlaced("{}")); err != nil {
		t.Fatalf("deliver: %v", err)
	}
	if got.proto != "HTTP/2.0" || string(got.body) != "{}" {
		t.Errorf("%s %q", got.proto, got.body)
	}
	w.Close()
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	if transport(Config{}.withDefaults()).Proxy != nil {
		t.Fatal("the transport has a proxy")
	}
}

func TestConfigBounds(t *testing.T) {
	t.Parallel()
	ending := GenerateSecret()
	ending.NotAfter = time.Now().Add(time.Hour)
	valid := Config{URL: "https://example.com/hook", Secrets: []Secret{GenerateSecret(), ending}}
	if err := valid.Validate(); err != nil {
		t.Fatalf("valid: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"no URL":             func(c *Config) { c.URL = "" },
		"private address":    func(c *Config) { c.URL = "http://10.0.0.1/" },
		"short timeout":      func(c *Config) { c.Timeout = time.Second - 1 },
		"long timeout":       func(c *Config) { c.Timeout = 5*time.Minute + 1 },
		"negative timeout":   func(c *Config) { c.Timeout = -1 },
		"no concurrency":     func(c *Config) { c.Concurrency = -1 },
		"high concurrency":   func(c *Config) { c.Concurrency = 257 },
		"negative cap":       func(c *Config) { c.RetryAfterCap = -1 },
		"no secret":          func(c *Config) { c.Secrets = nil },
		"empty secret":       func(c *Config) { c.Secrets = []Secret{{}} },
		"only ending secret": func(c *Config) { c.Secrets = []Secret{ending} },
		"many secrets":       func(c *Config) { c.Secrets = make([]Secret, MaxSecrets+1) },
	} {
		config := valid
		change(&config)
		if _, err := New(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
