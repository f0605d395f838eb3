package outbox

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(migrateFile); path != "" {
		migrateAndDie(path)
	}
	// Each check of the simulations opens real databases; -rapid.checks asks for more.
	_ = flag.Set("rapid.checks", "15")
	flag.Parse()
	goleak.VerifyTestMain(m)
}
