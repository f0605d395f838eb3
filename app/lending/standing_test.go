package lending_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// signed makes the body and the headers of an event, as its source would.
func signed(t testing.TB, secret, id, body string, at time.Time) http.Header {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature}}
}

func standing(name, member string, at time.Time) string {
	return fmt.Sprintf(`{"type":%q,"data":{"member":%q,"reason":"fees","at":%q}}`, name, member, at.UTC().Format(time.RFC3339Nano))
}

// take sends an event with a good signature.
func (b *bed) take(t testing.TB, id, body string) (inbound.Taken, error) {
	t.Helper()
	var e inbound.Envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	return b.inbound.Take(t.Context(), "accounts", signed(t, whsec, id, body, time.Now()), []byte(body), e)
}

func (b *bed) event(t testing.TB, name, member string, at time.Time) error {
	t.Helper()
	taken, err := b.take(t, string(outbox.NewMessageID()), standing(name, member, at))
	if err == nil && taken.Outcome != inbound.Applied {
		t.Fatalf("%s: %s", name, taken.Outcome)
	}
	return err
}

// TestStandingComesFromOutside: events are taken once, in whatever order they come, and decide only as far as they are trusted.
func TestStandingComesFromOutside(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.dispatcher(t, false)
	b.members(t, "m1")
	suspended := func() bool { return b.count(t, `SELECT suspended FROM lending_members WHERE id = 'm1'`) == 1 }
	start := time.Now()
	for _, c := range []struct {
		id, name string
		at       time.Duration
		want     inbound.Outcome
		after    bool
	}{
		{"e-1", "member-suspended", 0, inbound.Applied, true},
		{"e-1", "member-suspended", 0, inbound.Suppressed, true},
		{"e-3", "member-reinstated", 2 * time.Minute, inbound.Applied, false},
		{"e-1", "member-suspended", 0, inbound.Suppressed, false},
		{"e-2", "member-suspended", time.Minute, inbound.Outdated, false},
		{"e-4", "member-suspended", 3 * time.Minute, inbound.Applied, true},
	} {
		taken, err := b.take(t, c.id, standing(c.name, "m1", start.Add(c.at)))
		if err != nil || taken.Outcome != c.want || suspended() != c.after {
			t.Errorf("%s %s: %+v, %v; suspended %v", c.id, c.name, taken, err, suspended())
		}
	}
}

func TestAnAdvisoryEventIsNotedAndDecidesNothing(t *testing.T) {
	t.Parallel()
	set, err := records.Load(fstest.MapFS{"integration-events/member-suspended.md": {Data: []byte("---\ntitle: A rumour\ndirection: inbound\ntrust: advisory\nguarantee: at-least-once\n" +
		"boundary: the commit\nduplicates: by id\nretry_horizon: retry-horizon\nrunbook: refused-inbound-events\nversions:\n  - version: 1\n    fields: {\"*\": personal}\n---\nA rumour.\n")}})
	if err != nil {
		t.Fatal(err)
	}
	b := openBed(t, t.TempDir()+"/posthorn.db", set)
	b.dispatcher(t, false)
	b.members(t, "m1")
	taken, err := b.take(t, "e-1", standing("member-suspended", "m1", time.Now()))
	if err != nil || taken.Outcome != inbound.Noted || b.count(t, `SELECT count(*) FROM lending_members WHERE suspended = 0 AND standing_note LIKE 'accounts says%'`) != 1 {
		t.Errorf("%+v, %v", taken, err)
	}
}

// TestWhatIsNotAnEventIsRefused: nothing is changed, and nothing is remembered, so that a good one can follow under the same id.
func TestWhatIsNotAnEventIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.dispatcher(t, false)
	b.members(t, "m1")
	now := time.Now()
	good := standing("member-suspended", "m1", now)
	other := "whsec_" + "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	for name, c := range map[string]struct {
		source, body string
		header       http.Header
		want         string
	}{
		"unknown source":    {"nobody", good, signed(t, whsec, "e-1", good, now), inbound.ErrUnverified.Error()},
		"another secret":    {"accounts", good, signed(t, other, "e-1", good, now), inbound.ErrUnverified.Error()},
		"another body":      {"accounts", good + " ", signed(t, whsec, "e-1", good, now), inbound.ErrUnverified.Error()},
		"no signature":      {"accounts", good, http.Header{}, inbound.ErrUnverified.Error()},
		"an old signature":  {"accounts", good, signed(t, whsec, "e-1", good, now.Add(-time.Hour)), inbound.ErrUnverified.Error()},
		"a future one":      {"accounts", good, signed(t, whsec, "e-1", good, now.Add(time.Hour)), inbound.ErrUnverified.Error()},
		"an outbound event": {"accounts", `{"type":"loan-borrowed","data":{}}`, nil, "unknown-type"},
		"an unknown type":   {"accounts", `{"type":"member-promoted","data":{}}`, nil, "unknown-type"},
		"another version":   {"accounts", `{"type":"member-suspended","schema_version":2,"data":{}}`, nil, "unknown-version"},
		"no data":           {"accounts", `{"type":"member-suspended"}`, nil, "invalid-payload"},
		"a wrong field":     {"accounts", `{"type":"member-suspended","data":{"member":7,"at":"2026-01-01T00:00:00Z"}}`, nil, "invalid-payload"},
		"a stranger":        {"accounts", standing("member-suspended", "m9", now), nil, "unknown-member"},
	} {
		if c.header == nil {
			c.header = signed(t, whsec, "e-1", c.body, now)
		}
		var e inbound.Envelope
		if err := json.Unmarshal([]byte(c.body), &e); err != nil {
			t.Fatal(err)
		}
		_, err := b.inbound.Take(t.Context(), c.source, c.header, []byte(c.body), e)
		if code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM posthorn_inbound`) + b.count(t, `SELECT sum(suspended) FROM lending_members`); n != 0 {
		t.Errorf("%d rows of refused events", n)
	}
	if taken, err := b.take(t, "e-1", good); err != nil || taken.Outcome != inbound.Applied {
		t.Errorf("the good one afterwards: %+v, %v", taken, err)
	}
	limited, err := inbound.New(nil, nil, map[string]inbound.Source{"x": {Secret: whsec, Types: []string{"["}}}, nil)
	if !errors.Is(err, inbound.ErrBadSource) || limited != nil {
		t.Errorf("a source with a bad pattern: %v", err)
	}
}
