package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/outbox"
)

// TestPullOverHTTP: what a consumer gets is byte for byte what was staged, and what it answers is on the disk.
func TestPullOverHTTP(t *testing.T) {
	t.Parallel()
	var dispatcher *outbox.Dispatcher
	b := newBed(t, func(d *api.Deps) { dispatcher = d.Dispatcher.(*outbox.Dispatcher) })
	if err := dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dispatcher.Stop(context.Background()) })
	t.Cleanup(b.deps.Destinations.EndLeases)
	if a := b.post(t, "/v1/destinations", `{"name":"till","kind":"pull","types":["order-*"],"timeout":"5m"}`); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	payloads := map[string][]byte{
		"text":  []byte("{\"order\":1,\r\n\t\"total\": 12345678901234567890.10, \"note\":\"<b>&\u2028é\x00\ufffd\"}"),
		"bytes": {0xff, 0x00, 0xfe, 0x22},
		"empty": {},
	}
	err := b.store.Writer.Do(t.Context(), func(ctx context.Context, tx *outbox.Tx) error {
		for id, payload := range payloads {
			m := outbox.Message{ID: outbox.MessageID(id), Type: "order-placed", Payload: payload, Headers: map[string]string{"traceparent": "00-1"}}
			if id == "text" {
				m.OrderingKey = "orders/1"
			}
			if _, err := outbox.Stage(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	as := b.tokens[access.Operator]
	for range 100 {
		if len(payloads) == 0 {
			break
		}
		a := b.send(t, as, "GET", "/v1/pull/till?wait=1s", "")
		var page struct {
			Deliveries []struct {
				ID, Fence      int64
				LeaseExpiresAt string `json:"lease_expires_at"`
				Message        struct {
					ID            string
					Payload       *string
					PayloadBase64 *string `json:"payload_base64"`
				}
			}
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || a.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %v %q: %v", a.status, a.header, a.body, err)
		}
		for _, d := range page.Deliveries {
			var got []byte
			if d.Message.Payload != nil {
				got = []byte(*d.Message.Payload)
			} else if got, err = base64.StdEncoding.DecodeString(*d.Message.PayloadBase64); err != nil {
				t.Error(err)
			}
			lease := regexp.MustCompile(`"id":` + strconv.FormatInt(d.ID, 10) + `,"handler":"till","state":"processing".*?"lease_owner":"token:the-operator","lease_expires_at":"([^"]+)"`)
			for _, list := range []string{"/v1/messages/" + d.Message.ID, "/v1/messages"} {
				shown := lease.FindStringSubmatch(b.get(t, list).body)
				if shown == nil || shown[1] != d.LeaseExpiresAt {
					t.Errorf("%s does not show that the consumer holds %d until %s: %v", list, d.ID, d.LeaseExpiresAt, shown)
				}
			}
			want, there := payloads[d.Message.ID]
			if !there || string(got) != string(want) {
				t.Errorf("%s: got %q, want %q", d.Message.ID, got, want)
			}
			if d.Message.ID == "text" {
				holdsShape(t, a.body)
			}
			path, fence := "/v1/pull/till/"+itoa(d.ID), itoa(d.Fence)
			if a := b.send(t, as, "POST", path, `{"fence":`+fence+`,"outcome":"extended"}`); a.status != 200 || !strings.Contains(a.body, "lease_expires_at") {
				t.Errorf("extend: %d %s", a.status, a.body)
			}
			if a := b.send(t, as, "POST", path, `{"fence":`+fence+`,"outcome":"delivered"}`); a.status != 200 {
				t.Errorf("settle: %d %s", a.status, a.body)
			}
			if a := b.send(t, as, "POST", path, `{"fence":`+fence+`,"outcome":"failed","retry_after":"30s","error":"too late"}`); a.status != 409 || a.problem(t).Code != "stale-fence" {
				t.Errorf("settle twice: %d %s", a.status, a.body)
			}
			delete(payloads, d.Message.ID)
		}
	}
	if len(payloads) > 0 {
		t.Errorf("never handed out: %v", payloads)
	}
	for _, tt := range []struct {
		token, method, path, body, want string
	}{
		{b.tokens[access.Viewer], "GET", "/v1/pull/till?wait=1s", "", "forbidden"},
		{b.tokens[access.Viewer], "POST", "/v1/pull/till/1", `{"fence":1,"outcome":"delivered"}`, "forbidden"},
		{b.far, "GET", "/v1/pull/till?wait=1s", "", "unknown-destination"},
		{b.far, "POST", "/v1/pull/till/1", `{"fence":1,"outcome":"delivered"}`, "unknown-destination"},
		{as, "GET", "/v1/pull/till?wait=1s&tenant=far", "", "forbidden"},
		{as, "GET", "/v1/pull/till?max=0", "", "bad-max"},
		{as, "GET", "/v1/pull/till?max=999", "", "invalid-pull"},
		{as, "GET", "/v1/pull/till?wait=999999999s", "", "invalid-pull"},
		{as, "POST", "/v1/pull/till/x", `{"fence":1,"outcome":"delivered"}`, "bad-id"},
		{as, "POST", "/v1/pull/till/1", `{"outcome":"delivered"}`, "missing-field"},
		{as, "POST", "/v1/pull/till/1", `{"fence":1,"outcome":"failed","retry_after":"soon"}`, "invalid-settlement"},
		{"", "GET", "/v1/pull/till", "", "unauthenticated"},
	} {
		if a := b.send(t, tt.token, tt.method, tt.path, tt.body); a.problem(t).Code != tt.want {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, a.status, a.body)
		}
	}
}

var pulledShape = regexp.MustCompile(`"id":\d+,"fence":\d+,"attempt":1,"lease_expires_at":"[^"]+Z","message":\{"id":"text","type":"order-placed","schema_version":1,` +
	`"occurred_at":"[^"]+Z","ordering_key":"orders/1","content_type":"application/json","headers":\{"traceparent":"00-1"\},"payload":"`)

func holdsShape(t *testing.T, body string) {
	t.Helper()
	if !pulledShape.MatchString(body) {
		t.Errorf("the wire has changed: %s", body)
	}
}
