package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func allow(t *testing.T, entries ...string) egress.Policy {
	t.Helper()
	policy, err := egress.ParseAllow(entries)
	if err != nil {
		t.Fatalf("parse the allow list: %v", err)
	}
	return policy
}

func TestPublicAddressesPass(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "192.0.1.0",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888",
	} {
		if err := (egress.Policy{}).Check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestSpecialRanges takes an address of each range: refused by default, allowed by a list that names its range.
func TestSpecialRanges(t *testing.T) {
	t.Parallel()
	for addr, list := range map[string]string{
		"127.0.0.1":                       "127.0.0.0/8",
		"127.255.255.254":                 "127.0.0.0/8",
		"::1":                             "::1",
		"::ffff:127.0.0.1":                "127.0.0.0/8",
		"::ffff:10.1.2.3":                 "::ffff:10.0.0.0/104",
		"10.0.0.1":                        "10.0.0.0/8",
		"172.16.0.1":                      "172.16.0.0/12",
		"172.31.255.255":                  "172.16.0.0/12",
		"192.168.1.1":                     "192.168.1.1",
		"100.64.0.1":                      "100.64.0.0/10",
		"100.127.255.255":                 "100.64.0.0/10",
		"192.0.0.8":                       "192.0.0.0/24",
		"192.0.2.1":                       "192.0.2.0/24",
		"198.51.100.7":                    "198.51.100.0/24",
		"203.0.113.7":                     "203.0.113.0/24",
		"198.18.0.1":                      "198.18.0.0/15",
		"198.19.255.255":                  "198.18.0.0/15",
		"192.88.99.1":                     "192.88.99.0/24",
		"240.0.0.1":                       "240.0.0.0/4",
		"fc00::1":                         "fc00::/7",
		"fd12:3456::1":                    "fd00::/8",
		"fec0::1":                         "fec0::/10",
		"2001:db8::1":                     "2001:db8::/32",
		"3fff::1":                         "3fff::/20",
		"2001:2::1":                       "2001:2::/48",
		"2001::808:808:0:0:f7f7:f7f7":     "2001::/32", // Teredo through and to 8.8.8.8
		"2002:808:808::1":                 "2002::/16",
		"64:ff9b::808:808":                "64:ff9b::/96",
		"64:ff9b:1::808:808":              "64:ff9b:1::/48",
		"::ffff:0:8.8.8.8":                "::ffff:0:0:0/96",
		"::8.8.8.8":                       "::/96",
		"100::1":                          "100::/64",
		"3ffe::1":                         "3ffe::/16",
		"4000::1":                         "4000::/3",
		"5f00::1":                         "5f00::/16",
		"fe00::1":                         "fe00::/9",
		"fd12:3456::1%eth0":               "fd00::/8",
		"2001:db8:ffff:ffff:ffff::ffff%1": "2001:db8::/32",
	} {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			err := (egress.Policy{}).Check(netip.MustParseAddr(addr))
			if !errors.Is(err, egress.ErrRefused) {
				t.Fatalf("without a list: %v, want it refused", err)
			}
			if !strings.Contains(err.Error(), "posthorn.yaml") {
				t.Errorf("%q does not say what to do", err)
			}
			if err := allow(t, list).Check(netip.MustParseAddr(addr)); err != nil {
				t.Errorf("with %s allowed: %v", list, err)
			}
			if err := allow(t, "203.0.114.0/24").Check(netip.MustParseAddr(addr)); err == nil {
				t.Error("allowed by a list that names another range")
			}
		})
	}
}

func TestNeverAllowed(t *testing.T) {
	t.Parallel()
	everything := allow(t, "0.0.0.0/0", "::/0")
	for _, addr := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.0.1", "::ffff:169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fe80::1", "fe80::1%eth0", "febf::1",
		"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1", "ff0e::1",
		// The same, hidden in translation addresses.
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "::ffff:0:169.254.169.254", "::169.254.169.254", "2002:a9fe:a9fe::1",
		"2001:0:a9fe:a9fe::f7f7:f7f7", "2001:0:808:808:0:0:5601:5601", "64:ff9b::e000:1",
	} {
		err := everything.Check(netip.MustParseAddr(addr))
		if !errors.Is(err, egress.ErrRefused) || !strings.Contains(err.Error(), "never") {
			t.Errorf("%s with everything allowed: %v, want never", addr, err)
		}
	}
	if err := everything.Check(netip.Addr{}); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("no address: %v", err)
	}
}

// TestTranslationNeedsBoth holds that allowing a translation range does not allow the private addresses behind it.
func TestTranslationNeedsBoth(t *testing.T) {
	t.Parallel()
	for addr, ranges := range map[string][2]string{
		"64:ff9b::7f00:1":               {"64:ff9b::/96", "127.0.0.0/8"},
		"64:ff9b:1::a00:1":              {"64:ff9b:1::/48", "10.0.0.0/8"},
		"2002:7f00:1::":                 {"2002::/16", "127.0.0.0/8"},
		"::ffff:0:192.168.0.1":          {"::ffff:0:0:0/96", "192.168.0.0/16"},
		"::127.0.0.1":                   {"::/96", "127.0.0.0/8"},
		"2001:0:808:808:0:0:80ff:fffe":  {"2001::/32", "127.0.0.0/8"},
		"2001:0:7f00:1:0:0:f7f7:f7f7":   {"2001::/32", "127.0.0.0/8"},
		"64:ff9b:1:7f00:0:100::":        {"64:ff9b:1::/48", "127.0.0.0/8"},
		"64:ff9b::6440:1":               {"64:ff9b::/96", "100.64.0.0/10"},
		"64:ff9b::c612:1":               {"64:ff9b::/96", "198.18.0.0/15"},
		"2001:0:a00:1:0:0:f7f7:f7f7":    {"2001::/23", "10.0.0.0/8"},
		"64:ff9b:1:0:c0:a800:100:0":     {"64:ff9b:1::/48", "192.168.0.0/16"},
		"64:ff9b:1:ffff:c0:a800:100:0":  {"64:ff9b:1::/48", "192.168.0.0/16"},
		"64:ff9b:1:ffff:ff:a800:a00:63": {"64:ff9b:1::/48", "10.0.0.0/8"},
	} {
		target := netip.MustParseAddr(addr)
		if err := allow(t, ranges[0]).Check(target); err == nil {
			t.Errorf("%s allowed by %s alone", addr, ranges[0])
		}
		if err := allow(t, ranges[1]).Check(target); err == nil {
			t.Errorf("%s allowed by %s alone", addr, ranges[1])
		}
	}
	if err := allow(t, "64:ff9b::/96", "127.0.0.0/8").Check(netip.MustParseAddr("64:ff9b::7f00:1")); err != nil {
		t.Errorf("both allowed: %v", err)
	}
}

func TestParseAllow(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost", "10.0.0.0/33", "10.0.0/8", "fe80::%eth0/64", "*", "10.0.0.1-10.0.0.9", " 10.0.0.0/8"} {
		if _, err := egress.ParseAllow([]string{bad}); err == nil {
			t.Errorf("%q was read as a prefix", bad)
		}
	}
	if policy := allow(t, "10.1.2.3/8"); policy.Allow[0] != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("10.1.2.3/8 became %v", policy.Allow[0])
	}
}
