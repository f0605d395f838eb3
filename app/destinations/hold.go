package destinations

import "strings"

// A hold's reason is for people; how it begins also tells states apart after a restart.
const (
	pausePrefix    = "paused by "
	unusablePrefix = "cannot be used: "
)

func pauseReason(actor, reason string) string {
	if reason == "" {
		return pausePrefix + actor
	}
	return pausePrefix + actor + ": " + reason
}

func isPause(hold string) bool { return strings.HasPrefix(hold, pausePrefix) }

// isUnusable says that a hold ends by itself once the destination can be built again.
func isUnusable(hold string) bool { return strings.HasPrefix(hold, unusablePrefix) }
