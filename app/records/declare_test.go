package records_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/posthorn/posthorn/app/records"
)

func TestNewIntegrationEvent(t *testing.T) {
	t.Parallel()
	dataDir := filepath.Join(t.TempDir(), "not", "there", "yet")
	path, err := records.NewIntegrationEvent(dataDir, "order-placed", records.AdvisoryTrust, []int{2, 1})
	if err != nil {
		t.Fatalf("declare: %v", err)
	}
	if want := filepath.Join(dataDir, "records", "integration-events", "order-placed.md"); path != want {
		t.Errorf("wrote %s, want %s", path, want)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("stat: %v", err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o", info.Mode().Perm())
	}
	set, err := records.Load(os.DirFS(records.OverlayDir(dataDir)))
	if err != nil {
		t.Fatalf("load:\n%v", err)
	}
	if err := set.Check(); err != nil {
		t.Errorf("check:\n%v", err)
	}
	event, ok := set.IntegrationEvent("order-placed")
	if !ok {
		t.Fatal("order-placed is not declared")
	}
	if event.Title != "Order placed" || event.Trust != records.AdvisoryTrust || event.Direction != records.Outbound {
		t.Errorf("got %q, %s, %s", event.Title, event.Trust, event.Direction)
	}
	if reads := event.Reads(); len(reads) != 2 || reads[0] != 1 || reads[1] != 2 {
		t.Errorf("reads versions %v", reads)
	}
	if err := event.Validate(2, []byte(`{"id":1}`)); err != nil {
		t.Errorf("validate: %v", err)
	}
}

func TestNewIntegrationEventRefuses(t *testing.T) {
	t.Parallel()
	dataDir := t.TempDir()
	first, err := records.NewIntegrationEvent(dataDir, "order-placed", records.Authoritative, []int{1})
	if err != nil {
		t.Fatalf("declare: %v", err)
	}
	before, err := os.ReadFile(first)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	for name, test := range map[string]struct {
		eventType string
		trust     records.Trust
		versions  []int
		want      error
	}{
		"existing":        {"order-placed", records.AdvisoryTrust, []int{1}, records.ErrExists},
		"built in":        {"parcel-sent", records.Authoritative, []int{1}, records.ErrExists},
		"bad name":        {"../order", records.Authoritative, []int{1}, records.ErrBadID},
		"no trust":        {"order-paid", "", []int{1}, nil},
		"trust with more": {"order-paid", "advisory\nrunbook: x", []int{1}, nil},
		"no versions":     {"order-paid", records.Authoritative, nil, nil},
		"version 0":       {"order-paid", records.Authoritative, []int{0}, nil},
		"version twice":   {"order-paid", records.Authoritative, []int{1, 1}, nil},
	} {
		_, err := records.NewIntegrationEvent(dataDir, test.eventType, test.trust, test.versions)
		var problems records.Problems
		if test.want != nil && !errors.Is(err, test.want) || test.want == nil && !errors.As(err, &problems) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	if after, err := os.ReadFile(first); err != nil || string(after) != string(before) {
		t.Errorf("the first record changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(first), "order-paid.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused record was written: %v", err)
	}
}

// Names that mean something else in YAML stay names.
func TestNewIntegrationEventNames(t *testing.T) {
	t.Parallel()
	dataDir := t.TempDir()
	for _, name := range []string{"true", "null", "no", "e1", "x"} {
		if _, err := records.NewIntegrationEvent(dataDir, name, records.Authoritative, []int{1}); err != nil {
			t.Errorf("declare %s: %v", name, err)
		}
	}
	if _, err := records.Load(os.DirFS(records.OverlayDir(dataDir))); err != nil {
		t.Errorf("load:\n%v", err)
	}
}
