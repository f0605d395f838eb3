package egress_test

import (
	"fmt"

	"github.com/posthorn/posthorn/app/integrations/egress"
)

func ExamplePolicy_CheckURL() {
	policy, _ := egress.ParseAllow([]string{"10.0.0.0/8"})
	for _, target := range []string{"https://example.com/hook", "http://10.1.2.3/hook", "http://127.0.0.1/hook", "http://169.254.169.254/", "http://0x7f.1/"} {
		fmt.Println(policy.CheckURL(target))
	}
	// Output:
	// <nil>
	// <nil>
	// address 127.0.0.1 refused: it is a loopback address; to allow it, the operator can add egress: {allow: ["127.0.0.0/8"]} to posthorn.yaml
	// address 169.254.169.254 refused: it is a cloud metadata address, which is never allowed
	// invalid target URL: its host is a number; write an IPv4 address as four decimal numbers without leading zeros
}
