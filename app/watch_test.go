package app

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/alerts"
	"github.com/posthorn/posthorn/app/destinations"
)

// TestAlertsAreToldPastTheLanesThatTheyWatch: the operator's receiver hears of its own dead lane, and of a store that has failed, while that lane
// holds everything; and whoever looks sees the same in the API and in the metrics, with the runbook.
func TestAlertsAreToldPastTheLanesThatTheyWatch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var mu sync.Mutex
	told := map[string]alerts.Alert{}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("posthorn-type") != alerts.Type {
			w.WriteHeader(http.StatusBadRequest) // what is delivered becomes a dead letter
			return
		}
		var alert alerts.Alert
		text, err := io.ReadAll(r.Body)
		if err = errors.Join(err, json.Unmarshal(text, &alert)); err != nil {
			t.Errorf("told %s: %v", text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		told[alert.ID+" "+string(alert.Handler)] = alert
	}))
	t.Cleanup(target.Close)
	path := filepath.Join(folder, ConfigName)
	if err := os.WriteFile(path, []byte(`egress: {allow: ["127.0.0.0/8"]}
alerts: {destination: pager}
settings:
  alert-interval: {value: 100ms, observation: a test does not wait}
  alert-raise-after: {value: 200ms, observation: a test does not wait}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	options := testOptions(t, folder)
	var err error
	if options.Config, err = ReadConfig(path, true); err != nil {
		t.Fatal(err)
	}
	a := open(t, options)
	ctx := access.With(t.Context(), access.LocalPrincipal())
	if _, err := a.destinations.Create(ctx, destinations.NewDestination{Name: "pager", Kind: destinations.Webhook, URL: target.URL, Types: []string{"parcel-*"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.stage(t.Context(), "parcel-sent"); err != nil {
		t.Fatal(err)
	}
	heard := func(alert, runbook string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			got, ok := told[alert]
			return ok && got.State == alerts.Raised && strings.Contains(strings.Join(got.Runbooks, " "), runbook)
		}
	}
	eventually(t, "told of the dead letter", heard("alert-dead-letters pager", "recover-dead-letters"))
	if _, err := a.destinations.Pause(ctx, "pager", "nothing may go out"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/v1/alerts": `"runbooks":["recover-dead-letters","replay"]`,
		"/metrics":   "\n" + `posthorn_alerts{alert="alert-dead-letters",handler="pager"} 1` + "\n",
	} {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d without %s: %s", path, w.Code, want, w.Body)
		}
	}
	a.store.Writer.Fail(errors.New("the disk is gone"))
	eventually(t, "told of the store", heard("alert-store-outage ", "store-outage"))
}
