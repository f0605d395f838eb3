package records_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn/app/records"
)

// load reads an overlay of files over the built-in records.
func load(t *testing.T, files map[string]string) (*records.Set, error) {
	t.Helper()
	overlay := fstest.MapFS{}
	for name, text := range files {
		overlay[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return records.Load(overlay)
}

// mustLoad is load for an overlay that is sound.
func mustLoad(t *testing.T, files map[string]string) *records.Set {
	t.Helper()
	set, err := load(t, files)
	if err != nil {
		t.Fatalf("load:\n%v", err)
	}
	return set
}

// wantProblem asks for exactly one problem, at a file and line, with these words.
func wantProblem(t *testing.T, err error, file string, line int, words ...string) {
	t.Helper()
	var problems records.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got error %v, want Problems", err)
	}
	if len(problems) != 1 {
		t.Fatalf("got %d problems, want 1:\n%v", len(problems), err)
	}
	problem := problems[0]
	if problem.File != file || problem.Line != line {
		t.Errorf("problem stands at %s:%d, want %s:%d", problem.File, problem.Line, file, line)
	}
	for _, word := range words {
		if !strings.Contains(problem.String(), word) {
			t.Errorf("problem %q does not say %q", problem, word)
		}
	}
}

func TestBuiltInRecordsAreSound(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, nil)
	if err := set.Check(); err != nil {
		t.Errorf("check:\n%v", err)
	}
	for _, record := range set.All() {
		head := record.About()
		if head.Body == "" || head.Origin != records.BuiltIn || head.File != head.Ref().String()+".md" {
			t.Errorf("%s: body %q, origin %s, file %s", head.Ref(), head.Body, head.Origin, head.File)
		}
	}
	if _, ok := set.IntegrationEvent("order-placed"); ok {
		t.Error("order-placed is built in; the quick start declares it")
	}
}

func TestEveryKindLoads(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, map[string]string{
		"journeys/fulfil.md": `---
title: Fulfil a reservation
trigger: use-cases/change-documents
steps:
  - {id: hold-copy, command: hold a copy, when: a copy came back}
  - {id: expire-pick-up, command: give it to the next, when: three days later}
ends: [collected, expired]
delivery_target: {within: 1m, share: 0.99}
alerts: [alert-oldest-pending-age]
---
`,
		"notifications/backlog.md": `---
title: Backlog
topic: backlog
query: backlog
freshness: {mode: immediate}
requirement: an operator holds a destination within seconds
update_latency: 2s
polling: each 5 s, seen after 2.5 s
measured_cost: 1 ms a poll
expected_connections: 3
recovery: asks again after a gap
decision: live
transport: server-sent-events
platform_support: any that does not buffer
---
`,
		"reactions/shelf.md": `---
title: Refresh the shelf
on: loan-borrowed
delivery: excluded
accepted_loss: the branch accepts an old shelf
repeat_with: posthorn lending shelf
---
`,
		"reactions/notice.md": "---\ntitle: Send the notice\non: loan-borrowed\ndelivery: outbox\nkey: message id\n---\n",
		"jobs/count.md":       "---\ntitle: Count\nschedule: each night\ndelivery: outbox\n---\n",
	})
	if err := set.Check(); err != nil {
		t.Errorf("check:\n%v", err)
	}
	seen := map[records.Kind]bool{}
	for _, record := range set.All() {
		seen[record.About().Kind] = true
	}
	for _, kind := range records.Kinds() {
		if !seen[kind] {
			t.Errorf("no record of kind %s", kind)
		}
	}
	for _, journey := range records.List[*records.Journey](set) {
		if journey.DeliveryTarget.Age().String() != "1m0s" {
			t.Errorf("journey: %+v", journey)
		}
	}
}

func TestOverlayWins(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, map[string]string{
		"settings/retry-first.md": "\ufeff---\r\ntitle: Mine\r\nvalue: 7s\r\nunit: duration\r\nleast: 1s\r\nmost: 1m\r\n" +
			"derived_from: use-cases/change-documents\r\nobservation: seen\r\n---\r\nMine.\r\n",
		".hidden/x.md":             "nothing of ours",
		"settings/.retry.md.swp":   "an editor's",
		"settings/retry-first.md~": "an editor's",
	})
	setting, _ := set.Setting("retry-first")
	if setting.Title != "Mine" || setting.Origin != records.Overlay || setting.Body != "Mine." {
		t.Errorf("got %q from %s with body %q", setting.Title, setting.Origin, setting.Body)
	}
	if got := set.Duration("retry-first").String(); got != "7s" {
		t.Errorf("retry-first is %s, want 7s", got)
	}
}

func TestOverlayFolderMayBeMissing(t *testing.T) {
	t.Parallel()
	if _, err := records.Load(os.DirFS(t.TempDir() + "/none")); err != nil {
		t.Errorf("load: %v", err)
	}
}

func TestLoadReportsEveryFile(t *testing.T) {
	t.Parallel()
	_, err := load(t, map[string]string{
		"setting/x.md":       "---\n---\n",
		"settings/x.yaml":    "---\n---\n",
		"settings/Bad_ID.md": "---\ntitle: x\n---\n",
		"runbooks/short.md":  "---\ntitle: x\n---\n",
		"runbooks/folder/x":  "a folder inside",
		"runbooks/big.md":    strings.Repeat("x", 300<<10),
	})
	var problems records.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want Problems", err)
	}
	for _, want := range []string{
		"setting: this is no kind of record",
		"settings/x.yaml: a record is a Markdown file",
		"settings/Bad_ID.md: ",
		"runbooks/short.md:1: when is missing",
		"runbooks/short.md:1: the text below the front matter is missing",
		"runbooks/folder: a record is a Markdown file",
		"runbooks/big.md: a record is a file of at most",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no problem %q in:\n%v", want, err)
		}
	}
	if len(problems) != 7 {
		t.Errorf("got %d problems, want 7", len(problems))
	}
}

func TestCheckFindsDanglingReferences(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, map[string]string{
		"use-cases/lend.md": `---
title: Lend
actor: a clerk
request: command
emits: [loan-lost]
delivery_target: {within: 1m, share: 99%}
alerts: [alert-dead-letters]
---
`,
	})
	err := set.Check()
	wantProblem(t, err, "use-cases/lend.md", 5, "integration-events/loan-lost", "does not exist")
}

func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, sound := range map[string]bool{
		"a": true, "order-placed": true, "a" + strings.Repeat("b", 62): true,
		"": false, "A": false, "1a": false, "-a": false, "a_b": false, "a.b": false, "a/b": false, "../a": false, "a\n": false,
		"a" + strings.Repeat("b", 63): false, "é": false,
	} {
		if err := records.CheckID(id); (err == nil) != sound || err != nil && !errors.Is(err, records.ErrBadID) {
			t.Errorf("CheckID(%q) = %v", id, err)
		}
	}
}
