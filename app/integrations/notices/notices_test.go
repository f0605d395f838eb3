package notices

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/outbox"
)

const pickup = `{"about":"pickup","name":"Ada","email":"ada@example.org","title":"Moby-Dick","until":"2026-12-05T09:00:00Z"}`

func delivery(payload string) outbox.Delivery {
	return outbox.Delivery{Message: outbox.Message{ID: "m-1", Kind: outbox.ProviderEffect, Type: "lending-notice", SchemaVersion: 1, Payload: []byte(payload)}}
}

func provider(t *testing.T, url string) *Provider {
	t.Helper()
	policy, err := egress.ParseAllow([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{URL: url, Token: "secret", Egress: policy, File: filepath.Join(t.TempDir(), "notices.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestTheProviderIsAskedInItsOwnWords sends one message twice: the words are the integration's, the key is the message's.
func TestTheProviderIsAskedInItsOwnWords(t *testing.T) {
	t.Parallel()
	sent := map[string]Request{}
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got Request
		requests++
		key := r.Header.Get("Idempotency-Key")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Key != key || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %q: %+v, %v", key, got, err)
		}
		if _, known := sent[key]; known {
			w.WriteHeader(http.StatusConflict)
		}
		sent[key] = got
	}))
	defer server.Close()
	p := provider(t, server.URL)
	for range 2 {
		if err := p.Deliver(t.Context(), delivery(pickup)); err != nil {
			t.Fatal(err)
		}
	}
	got := sent["m-1"]
	if requests != 2 || len(sent) != 1 || got.To != "ada@example.org" || got.Subject != "Ready for you: Moby-Dick" || !strings.Contains(got.Text, "until Saturday, 5 December 2026") {
		t.Errorf("%d requests: %+v", requests, sent)
	}
}

func TestAnswersAndUnreadableNotices(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	p := provider(t, server.URL)
	class := func(err error) outbox.Class {
		if err == nil {
			return outbox.Delivered
		}
		failure := new(outbox.Failure)
		if !errors.As(err, &failure) {
			return ""
		}
		return failure.Class
	}
	for code, want := range map[int]outbox.Class{200: outbox.Delivered, 202: outbox.Delivered, 409: outbox.Delivered, 302: outbox.Rejected, 400: outbox.Rejected,
		401: outbox.Rejected, 408: outbox.Failed, 429: outbox.Throttled, 500: outbox.Failed, 503: outbox.Failed} {
		status = code
		if got := class(p.Deliver(t.Context(), delivery(pickup))); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
	for _, payload := range []string{``, `[]`, `{}`, strings.Replace(pickup, "pickup", "birthday", 1), strings.Replace(pickup, "ada@example.org", "", 1)} {
		if got := class(p.Deliver(t.Context(), delivery(payload))); got != outbox.Rejected {
			t.Errorf("%s: %s", payload, got)
		}
	}
	server.Close()
	if got := class(p.Deliver(t.Context(), delivery(pickup))); got != outbox.Unreachable {
		t.Errorf("a provider that is down: %s", got)
	}
}

func TestWithoutAProviderNoticesAreWrittenDown(t *testing.T) {
	t.Parallel()
	p := provider(t, "")
	for range 2 {
		if err := p.Deliver(t.Context(), delivery(pickup)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(p.config.File)
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 2 || lines[0] != lines[1] || !strings.Contains(lines[0], `"key":"m-1"`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestALineAfterATornOneIsWhole begins with what a crash leaves: half a line, whose notice comes again.
func TestALineAfterATornOneIsWhole(t *testing.T) {
	t.Parallel()
	p := provider(t, "")
	if err := os.WriteFile(p.config.File, []byte(`{"key":"m-`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Deliver(t.Context(), delivery(pickup)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(p.config.File)
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\n")
	var read Request
	if err := json.Unmarshal([]byte(last), &read); err != nil || read.Key != "m-1" {
		t.Errorf("%v: the line after the torn one is not whole: %q", err, text)
	}
}
