package app

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTheLibraryFromAnotherModule builds and runs programs that know the public packages only, as a user's module does.
func TestTheLibraryFromAnotherModule(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=readonly", "-o", folder+string(filepath.Separator), "./...")
	build.Dir = filepath.Join(examples, "library")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	for program, want := range map[string]string{
		"bunshop":  "accounting got order-paid {\"order\":1}\n",
		"sqlshop":  "1 order, 1 receipt\n",
		"liveshop": "orders paid: 1 order\n",
	} {
		output, err := exec.CommandContext(t.Context(), filepath.Join(folder, program)).CombinedOutput()
		if err != nil || string(output) != want {
			t.Errorf("%s: %v, %q, want %q", program, err, output, want)
		}
	}
}
