package outbox

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Each check of the simulations opens real databases; -rapid.checks asks for more.
	_ = flag.Set("rapid.checks", "15")
	flag.Parse()
	goleak.VerifyTestMain(m)
}
