package demo

import "testing"

// TestKilledSupervisorLeavesNoOrphan: the kernel tells the child.
func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command, w := running(t, dir)
	started := w.until("start", is("started"))
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	gone(t, started.PID)
}
