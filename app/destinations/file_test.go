package destinations

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/posthorn/posthorn/app/access"
)

// TestTenantsWriteToFilesOfTheirOwn gives two tenants the same path: neither writes to the other's file, after a restart too.
func TestTenantsWriteToFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	st := newStore(t)
	files := func(c *Config) { c.Files = []string{folder} }
	b := st.boot(t, files)
	stranger := access.Principal{Actor: "token:far", Tenant: "far", Role: access.Admin, TokenID: "tok_far"}
	to := func(name, path string) NewDestination {
		return NewDestination{Name: name, Kind: File, Path: path, Types: []string{"*"}}
	}
	if _, err := b.Create(as(t, admin), to("out", "x.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(as(t, stranger), to("far-out", "x.jsonl")); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(folder, "x.jsonl")
	if _, err := b.Create(as(t, stranger), to("far-in", theirs)); codeOf(err) != "invalid-destination" {
		t.Errorf("another tenant's file: %v", err)
	}
	if _, err := b.Alter(as(t, stranger), "far-out", Change{Path: &theirs}); codeOf(err) != "invalid-destination" {
		t.Errorf("a change to another tenant's file: %v", err)
	}
	for n := range 2 {
		b.stage(t, "main")
		b.stage(t, "far")
		for tenant, path := range map[string]string{"main": theirs, "far": filepath.Join(folder, "far", "x.jsonl")} {
			eventually(t, "written for "+tenant, func() bool {
				text, _ := os.ReadFile(path)
				return bytes.Count(text, []byte("\n")) == n+1 && bytes.Count(text, []byte(`"tenant":"`+tenant+`"`)) == n+1
			})
		}
		b.stop()
		b = st.boot(t, files)
	}
}
