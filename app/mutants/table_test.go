package mutants

import (
	"fmt"
	"testing"
)

// TestMutationsStillApply: the source that each mutation changes is there, so that it is not found out by make mutants alone; and each provision
// that code can break has one.
func TestMutationsStillApply(t *testing.T) {
	t.Parallel()
	names, provisions := map[string]bool{}, map[string]bool{}
	for _, m := range Table {
		if names[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		names[m.Name], provisions[m.Provision] = true, true
		if _, err := Overlay("../..", t.TempDir(), m.Changes); err != nil || len(m.Changes) == 0 {
			t.Errorf("%s: %v (the source has moved on: mend app/mutants/table.go, and see that make mutants still catches it)", m.Name, err)
		}
	}
	for n := 1; n <= 49; n++ {
		provision := fmt.Sprintf("P%d", n)
		if _, reason := Unbroken[provision]; reason == provisions[provision] {
			t.Errorf("%s: a mutation (%t), or a reason for none (%t)", provision, provisions[provision], reason)
		}
	}
}

// TestOverlayChangesWhatIsThereOnce refuses a change whose text has gone, or stands in two places.
func TestOverlayChangesWhatIsThereOnce(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"no such text", "err"} {
		if _, err := Overlay("../..", t.TempDir(), []Change{{"app/mutants/overlay.go", old, ""}}); err == nil {
			t.Errorf("%q was changed", old)
		}
	}
}
