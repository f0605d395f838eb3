//go:build beside

package app

import "testing"

// TestStagingFromNode needs what make beside installs.
func TestStagingFromNode(t *testing.T) {
	t.Parallel()
	runExample(t, "node", "node", "--test")
}
