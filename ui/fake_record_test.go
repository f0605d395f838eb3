package ui

import "net/http"

// The records' answers.

func (a *appliance) showAlerts(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	alerts := a.alerts
	if alerts == nil {
		alerts = []map[string]any{}
	}
	answer(w, 200, map[string]any{"alerts": alerts, "receiver": nil, "freshness": immediate})
}

func (a *appliance) listRecords(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, map[string]any{"freshness": immediate, "records": []map[string]any{
		{"id": "change-documents", "kind": "use-cases", "title": "Change documents and say what happened", "origin": "built-in"},
		{"id": "order-placed", "kind": "integration-events", "title": "An order was placed", "origin": "overlay"},
		{"id": "retry-cap", "kind": "settings", "title": "Longest delay between retries", "origin": "built-in"},
		{"id": "recover-dead-letters", "kind": "runbooks", "title": "Recover dead letters", "origin": "built-in"},
	}})
}

var retryCap = map[string]any{"id": "retry-cap", "title": "Longest delay between retries", "value": "30m", "unit": "duration", "least": "1s", "most": "7d", "default": "1h",
	"source": "override", "derived_from": "use-cases/change-documents", "observation": "The ledger is back within half an hour."}

func (a *appliance) showRecord(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != "recover-dead-letters" && r.PathValue("id") != "retry-cap" {
		refuse(w, 404, "no-record", "There is no such record.", "GET /v1/records lists them.")
		return
	}
	record := map[string]any{"id": r.PathValue("id"), "kind": r.PathValue("kind"), "title": "Recover dead letters", "origin": "built-in", "file": "runbooks/recover-dead-letters.md",
		"front_matter": map[string]any{"title": "Recover dead letters", "tells": []string{"alert-dead-letters"}}, "body": "See", "freshness": immediate,
		"html": `<p>Kept for <a href="/records/settings/retry-cap"><code>retry-cap</code></a>.</p><ol><li><p>See which there are:</p><pre><code>posthorn messages list --state dead-letter</code></pre></li></ol>` +
			`<table><thead><tr><th>class</th><th>meaning</th></tr></thead><tbody><tr><td>rejected</td><td>the receiver understood and refused</td></tr></tbody></table>`,
		"references":    []map[string]any{{"field": "tells", "kind": "settings", "id": "alert-dead-letters", "title": "Alert: dead letters"}},
		"referenced_by": []map[string]any{{"field": "runbook", "kind": "integration-events", "id": "order-placed", "title": "An order was placed"}}}
	if r.PathValue("id") == "retry-cap" {
		record["title"], record["setting"] = retryCap["title"], retryCap
	}
	answer(w, 200, record)
}

func (a *appliance) listSettings(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, map[string]any{"settings": []any{retryCap}, "freshness": immediate})
}

func (a *appliance) listProvisions(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, map[string]any{"freshness": immediate, "provisions": []map[string]any{
		{"provision": "P1", "state": "met", "how": "staged by the post-handler in the command's own transaction", "tests": []string{"app/mediator.TestACommandPassesEveryStepInOrder"}},
		{"provision": "P36", "state": "partly", "how": "the emitted version is a setting", "tests": []string{}}}})
}
