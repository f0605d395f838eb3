package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/messages"
	"github.com/posthorn/posthorn/app/records"
)

// withRecipient is an event with a field that not everybody may see.
var withRecipient = strings.NewReplacer("{order: internal, total: internal}", "{order: internal, recipient: personal, card: secret}").Replace(orderPlaced)

// TestRecordsAreServed reads every record in effect, and what is said of settings.
func TestRecordsAreServed(t *testing.T) {
	t.Parallel()
	set, err := records.Load(nil)
	if err == nil {
		err = set.Override(map[string]records.Override{"retry-cap": {Value: "30m", Observation: "they are back within the hour"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(d *api.Deps) { d.Records = func() *records.Set { return set } })
	viewer := b.tokens[access.Viewer]
	for _, record := range set.All() {
		about := record.About()
		got := b.send(t, viewer, http.MethodGet, "/v1/records/"+about.Ref().String(), "")
		var detail struct {
			ID, Title, Body, HTML string
			FrontMatter           map[string]any    `json:"front_matter"`
			References            []records.Mention `json:"references"`
			ReferencedBy          []records.Mention `json:"referenced_by"`
		}
		if err := json.Unmarshal([]byte(got.body), &detail); err != nil || got.status != 200 {
			t.Fatalf("%s: %d %v %s", about.Ref(), got.status, err, got.body)
		}
		if detail.ID != about.ID || detail.FrontMatter["title"] != about.Title || (detail.HTML == "") != (about.Body == "") {
			t.Errorf("%s: %s", about.Ref(), got.body)
		}
		for _, m := range detail.References {
			back := b.send(t, viewer, http.MethodGet, "/v1/records/"+string(m.Kind)+"/"+m.ID, "").body
			if !strings.Contains(back, `{"field":"`+m.Field+`","kind":"`+string(about.Kind)+`","id":"`+about.ID+`"`) {
				t.Errorf("%s names %s/%s, which does not say so", about.Ref(), m.Kind, m.ID)
			}
		}
	}
	if p := b.send(t, viewer, http.MethodGet, "/v1/records/settings/nobody", "").problem(t); p.Status != 404 || p.Code != "no-record" {
		t.Errorf("a record that is not there: %+v", p)
	}
	settings := b.send(t, viewer, http.MethodGet, "/v1/settings", "").body
	for _, want := range []string{
		`{"id":"retry-cap","title":"Longest delay between retries","value":"30m","unit":"duration"`, `"source":"override"`, `"observation":"they are back within the hour"`,
	} {
		if !strings.Contains(settings, want) {
			t.Errorf("settings lack %s: %s", want, settings)
		}
	}
	if got := b.send(t, viewer, http.MethodGet, "/v1/conformance", ""); strings.Count(got.body, `"provision":`) != 56 {
		t.Errorf("conformance: %s", got.body)
	}
}

// TestClassifiedPayloads holds who sees what of a payload, on every way on which the API shows one.
func TestClassifiedPayloads(t *testing.T) {
	t.Parallel()
	set, err := records.Load(fstest.MapFS{"integration-events/order-placed.md": {Data: []byte(withRecipient)}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(d *api.Deps) {
		d.Records = func() *records.Set { return set }
		d.Messages = messages.New(d.Mediator, emits.Judge{Records: d.Records}, d.Destinations.Lease)
	})
	const private, card = "Ada Lovelace", "4111 1111"
	staged := `{"type":"order-placed","id":"m-1","payload":{"order": 1.0, "recipient":"` + private + `","card":"` + card + `"}}`
	if got := b.post(t, "/v1/messages", staged); got.status != http.StatusCreated {
		t.Fatal(got.body)
	}
	if got := b.post(t, "/v1/messages", `{"type":"order-placed","id":"m-2","payload":{"order": 1.0}}`); got.status != http.StatusCreated {
		t.Fatal(got.body)
	}
	b.fail(t, "m-1")
	viewer := b.tokens[access.Viewer]
	shown := b.send(t, viewer, http.MethodGet, "/v1/messages/m-1", "").body
	if !strings.Contains(shown, `"payload":{"order":1.0,"recipient":"[personal]","card":"[secret]"}`) || !strings.Contains(shown, `"masked":["/recipient","/card"]`) {
		t.Errorf("a viewer sees %s", shown)
	}
	if strings.Contains(shown, `"excerpt":"`) {
		t.Errorf("a viewer sees what a target answered: %s", shown)
	}
	if p := b.send(t, viewer, http.MethodGet, "/v1/messages/m-1/payload", "").problem(t); p.Status != 403 || p.Code != "classified-payload" {
		t.Errorf("a viewer's payload: %+v", p)
	}
	if got := b.send(t, viewer, http.MethodGet, "/v1/messages/m-2/payload", ""); got.status != 200 || got.body != `{"order": 1.0}` {
		t.Errorf("an open payload: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/v1/messages", "/v1/messages?state=dead-letter", "/v1/messages?q=Ada", "/v1/backlog", "/v1/records", "/v1/destinations"} {
		if got := b.send(t, viewer, http.MethodGet, path, ""); strings.Contains(got.body, private) || strings.Contains(got.body, card) {
			t.Errorf("GET %s shows a viewer %s", path, got.body)
		}
	}
	for _, role := range []access.Role{access.Operator, access.Admin} {
		if got := b.send(t, b.tokens[role], http.MethodGet, "/v1/messages/m-1", ""); !strings.Contains(got.body, private) || strings.Contains(got.body, `"masked"`) {
			t.Errorf("%s sees %s", role, got.body)
		}
		if got := b.send(t, b.tokens[role], http.MethodGet, "/v1/messages/m-1/payload", ""); !strings.Contains(got.body, card) {
			t.Errorf("%s gets %s", role, got.body)
		}
		if got := b.send(t, b.tokens[role], http.MethodGet, "/v1/audit", ""); strings.Contains(got.body, private) {
			t.Errorf("the audit shows %s", got.body)
		}
	}
}
