package records_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/records"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, nil)
	durations := map[string]time.Duration{
		"delivery-timeout": 15 * time.Second, "lease-grace": 15 * time.Second,
		"retry-first": 5 * time.Second, "retry-cap": time.Hour, "retry-horizon": 72 * time.Hour, "idempotency-horizon": 72 * time.Hour,
		"unreachable-horizon": 90 * 24 * time.Hour, "retry-after-cap": 24 * time.Hour,
		"breaker-probe-first": time.Second, "breaker-probe-cap": 5 * time.Minute, "command-deadline": 5 * time.Second,
		"retention-dispatched": 7 * 24 * time.Hour, "retention-dead-letters": 90 * 24 * time.Hour, "retention-audit": 365 * 24 * time.Hour,
		"drain-timeout": 20 * time.Second, "poll-interval": 5 * time.Second,
		"foreign-poll-busy": time.Millisecond, "foreign-poll-idle": 50 * time.Millisecond,
		"alert-raise-after": 30 * time.Second, "alert-clear-after": time.Minute, "alert-oldest-pending-age": time.Minute,
		"alert-store-outage": time.Second, "alert-interval": time.Second, "alert-retry-first": time.Second, "alert-retry-cap": time.Minute,
		"live-client-timeout": 30 * time.Second, "live-heartbeat": 15 * time.Second, "live-lifespan": time.Hour,
		"live-revalidation": time.Minute, "live-backoff-first": 500 * time.Millisecond, "live-backoff-cap": 30 * time.Second,
		"session-idle": 12 * time.Hour, "secret-overlap": 24 * time.Hour, "session-absolute": 7 * 24 * time.Hour,
		"lending-loan-period": 28 * 24 * time.Hour, "lending-overdue-grace": 24 * time.Hour, "lending-pickup-time": 7 * 24 * time.Hour,
		"lending-shelf-window": 30 * 24 * time.Hour, "inbound-horizon": 30 * 24 * time.Hour,
		"pull-wait": 30 * time.Second, "foreign-pause": 100 * time.Millisecond, "pull-lease-cap": time.Hour,
	}
	counts := map[string]int{
		"retry-attempts": 12, "breaker-opens-after": 5, "claim-batch": 256, "webhook-concurrency": 16, "handler-concurrency": 4,
		"transaction-changes": 100, "transaction-emits": 100, "writer-queue": 4096, "retention-dispatched-count": 1_000_000, "alert-dead-letters": 1, "alert-unclaimed": 1, "alert-clock-untrusted": 1, "alert-lost-tail": 1, "alert-outbox-incomplete": 1,
		"live-connections": 1000, "live-connections-user": 20, "live-connections-address": 100, "live-refreshes": 4, "live-history": 4096, "port": 7678,
		"lending-loan-limit": 10, "lending-renewal-limit": 2, "lending-reservation-limit": 5, "lending-loan-borrowed-version": 1, "lending-shelf-size": 10,
		"pull-concurrency": 256, "pull-batch": 100, "file-concurrency": 64,
	}
	sizes := map[string]int64{
		"bodies-limit": 64 << 20, "payload-limit": 1 << 20, "body-limit": 4 << 20, "live-receive-size": 16 << 10, "live-event-size": 16 << 10, "live-polling-bytes": 5 << 20,
		"size-budget": 4 << 30, "disk-reserve": 16 << 20,
	}
	ratios := map[string]float64{
		"retry-jitter": 0.2, "alert-clear-below": 0.8, "alert-failure-rate": 0.01, "live-lifespan-jitter": 0.1, "live-polling-cpu": 0.01, "foreign-share": 0.02, "alert-size-budget": 0.8,
	}
	for id, want := range durations {
		if got := set.Duration(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	for id, want := range counts {
		if got := set.Int(id); got != want {
			t.Errorf("%s is %d, want %d", id, got, want)
		}
	}
	for id, want := range sizes {
		if got := set.Bytes(id); got != want {
			t.Errorf("%s is %d, want %d", id, got, want)
		}
	}
	for id, want := range ratios {
		if got := set.Ratio(id); got != want {
			t.Errorf("%s is %g, want %g", id, got, want)
		}
	}
	if got := set.Rate("destination-rate"); got != 0 {
		t.Errorf("destination-rate is %g, want none", got)
	}
	if got, want := len(set.Settings()), len(durations)+len(counts)+len(sizes)+len(ratios)+1; got != want {
		t.Errorf("%d settings are declared and %d have a default here", got, want)
	}
}

func TestReadingAnUndeclaredSettingPanics(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, nil)
	for name, read := range map[string]func(){
		"undeclared": func() { set.Int("no-such-setting") },
		"other unit": func() { set.Int("delivery-timeout") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			read()
		}()
	}
}

const settingFile = "settings/mine.md"

func settingText(fields ...string) string {
	return "---\ntitle: Mine\n" + strings.Join(fields, "\n") +
		"\nderived_from: use-cases/change-documents\nobservation: seen\n---\n"
}

func TestSettingRecordsAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		line  int
		words []string
	}{
		"above most": {settingText("value: 5", "unit: count", "least: 1", "most: 4"), 3, []string{"mine 5 is out of range", "at least 1", "at most 4"}},
		"below least": {settingText("value: 1s", "unit: duration", "least: 2s", "most: 4s"), 3,
			[]string{"mine 1s is out of range", "at least 2s", "at most 4s"}},
		"least above most": {settingText("value: 2", "unit: count", "least: 3", "most: 1"), 5, []string{"least 3 is above most 1"}},
		"no unit":          {settingText("value: 2", "least: 1", "most: 3"), 1, []string{"unit", "duration, bytes, count, ratio or per-second"}},
		"wrong unit":       {settingText("value: 2", "unit: meters", "least: 1", "most: 3"), 4, []string{"meters"}},
		"no most":          {settingText("value: 2", "unit: count", "least: 1"), 1, []string{"most is missing"}},
		"no number":        {settingText("value: many", "unit: count", "least: 1", "most: 3"), 3, []string{"many", "a whole number"}},
		"a list":           {settingText("value: [2]", "unit: count", "least: 1", "most: 3"), 3, []string{"one value"}},
		"a truth value":    {settingText("value: true", "unit: count", "least: 1", "most: 3"), 3, []string{"one value"}},
		"bad reference":    {settingText("value: 2", "unit: count", "least: 1", "most: 3", "not_above: A B"), 7, []string{"not_above"}},
		"target":           {strings.Replace(settingText("value: 2", "unit: count", "least: 1", "most: 3"), "use-cases/", "runbooks/", 1), 7, []string{"derived_from"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, map[string]string{settingFile: test.text})
			wantProblem(t, err, settingFile, test.line, test.words...)
		})
	}
}

func TestOverlayKeepsTheUnit(t *testing.T) {
	t.Parallel()
	_, err := load(t, map[string]string{"settings/port.md": settingText("value: 1s", "unit: duration", "least: 0s", "most: 2s")})
	wantProblem(t, err, "settings/port.md", 4, "port is counted in count, not in duration")
}

func TestOverride(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, nil)
	err := set.Override(map[string]records.Override{
		"delivery-timeout": {Value: "20s", Observation: "the ledger needs 16 s at month end"},
		"writer-queue":     {Value: "64", Observation: "a small board"},
	})
	if err != nil {
		t.Fatalf("override: %v", err)
	}
	if got := set.Duration("delivery-timeout"); got != 20*time.Second {
		t.Errorf("delivery-timeout is %s", got)
	}
	setting, _ := set.Setting("delivery-timeout")
	if !setting.Overridden || setting.Default.String() != "15s" || setting.Observation != "the ledger needs 16 s at month end" {
		t.Errorf("overridden %v, default %s, observation %q", setting.Overridden, setting.Default, setting.Observation)
	}
	if err := set.Check(); err != nil {
		t.Errorf("check: %v", err)
	}
}

func TestOverrideRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id       string
		override records.Override
		words    []string
	}{
		"too much":       {"delivery-timeout", records.Override{Value: "1h", Observation: "x"}, []string{"at least 100ms", "at most 10m"}},
		"too little":     {"delivery-timeout", records.Override{Value: "0s", Observation: "x"}, []string{"at least 100ms", "at most 10m"}},
		"unknown":        {"delivery-timeuot", records.Override{Value: "1h", Observation: "x"}, []string{"no such setting"}},
		"no name":        {"a\nb", records.Override{Value: "1h", Observation: "x"}, []string{`"a\nb"`, "no such setting"}},
		"no value":       {"delivery-timeout", records.Override{Observation: "x"}, []string{"value is missing", "a duration such as"}},
		"no observation": {"delivery-timeout", records.Override{Value: "20s"}, []string{"observation is missing"}},
		"no unit":        {"delivery-timeout", records.Override{Value: "20", Observation: "x"}, []string{"a duration such as"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustLoad(t, nil)
			err := set.Override(map[string]records.Override{
				test.id: test.override, "writer-queue": {Value: "64", Observation: "a small board"},
			})
			wantProblem(t, err, "posthorn.yaml", 0, test.words...)
			if set.Int("writer-queue") != 4096 {
				t.Error("a refused override changed the set")
			}
		})
	}
}

func TestCheckHoldsTheOrderOfSettings(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, nil)
	if err := set.Override(map[string]records.Override{"body-limit": {Value: "8KiB", Observation: "a small board"}}); err != nil {
		t.Fatalf("override: %v", err)
	}
	wantProblem(t, set.Check(), "posthorn.yaml", 0, "payload-limit 1MiB is above body-limit 8KiB", "lower payload-limit or raise body-limit")
}
