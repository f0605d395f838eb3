package egress

import "net/netip"

// block is a special range: why it is special, under the name that a refusal gives it.
type block struct {
	prefix netip.Prefix
	name   string
}

func blocks(name string, prefixes ...string) []block {
	list := make([]block, len(prefixes))
	for i, prefix := range prefixes {
		list[i] = block{prefix: netip.MustParsePrefix(prefix), name: name}
	}
	return list
}

func concat(lists ...[]block) []block {
	var all []block
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// find returns the first block of list that holds addr.
func find(list []block, addr netip.Addr) (block, bool) {
	for _, b := range list {
		if b.prefix.Contains(addr) {
			return b, true
		}
	}
	return block{}, false
}

// never is refused whatever the operator allows: nothing that takes a webhook lives there. Metadata services hand out a machine's
// credentials; those outside the link-local range are listed one by one.
var never = concat(
	blocks("a cloud metadata address",
		"169.254.169.254/32", // most clouds
		"169.254.170.0/24",   // AWS container credentials
		"100.100.100.200/32", // Alibaba
		"168.63.129.16/32",   // Azure's wire server, inside a public range
		"192.0.0.192/32",     // Oracle
		"fd00:ec2::/32",      // AWS
		"fd20:ce::254/128",   // Google
		"fd00:c1::/32",       // Oracle
		"fd00:42::42/128",    // Scaleway
	),
	blocks("a link-local address", "169.254.0.0/16", "fe80::/10"),
	blocks("an unspecified address", "0.0.0.0/8", "::/128"),
	blocks("a multicast or broadcast address", "224.0.0.0/4", "255.255.255.255/32", "ff00::/8"),
)

// special is refused unless the operator allows it. The Is… methods of netip.Addr miss about half of it.
var special = concat(
	blocks("a loopback address", "127.0.0.0/8", "::1/128"),
	blocks("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
	blocks("a shared (carrier-grade NAT) address", "100.64.0.0/10"),
	blocks("a protocol assignment", "192.0.0.0/24", "2001::/23"),
	blocks("a documentation address", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
	blocks("a benchmarking address", "198.18.0.0/15"),
	blocks("a 6to4 address", "192.88.99.0/24", "2002::/16"),
	blocks("a NAT64 address", "64:ff9b::/96", "64:ff9b:1::/48"),
	blocks("an IPv4-translated address", "::ffff:0:0:0/96"),
	blocks("an IPv4-compatible address", "::/96"),
	blocks("a site-local address", "fec0::/10"),
	blocks("a returned 6bone address", "3ffe::/16"),
	blocks("a reserved address", "240.0.0.0/4"),
)

// globalUnicast is the only part of IPv6 that is routed on the internet; whatever is neither in it nor named above is refused as
// unassigned, so that a range invented tomorrow is refused today.
var globalUnicast = netip.MustParsePrefix("2000::/3")

var unassigned = block{prefix: netip.MustParsePrefix("::/0"), name: "an address outside the internet's unicast range"}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible = netip.MustParsePrefix("::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// embedded returns the IPv4 addresses that a translator on the path may turn addr into. A packet for 64:ff9b::a9fe:a9fe arrives at
// 169.254.169.254, so allowing a translation range must not allow everything behind it.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	v4 := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	switch {
	case nat64.Contains(addr), translated.Contains(addr), compatible.Contains(addr) && addr != netip.IPv6Loopback():
		return []netip.Addr{v4(12, 13, 14, 15)}
	case sixToFour.Contains(addr):
		return []netip.Addr{v4(2, 3, 4, 5)}
	case teredo.Contains(addr): // the server, and the client with its bits flipped
		return []netip.Addr{v4(4, 5, 6, 7), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case localNAT64.Contains(addr):
		// Which of the layouts of RFC 6052 is in use is known to its operator only. Those that read as 0.0.0.0/8 are not.
		var list []netip.Addr
		for _, candidate := range []netip.Addr{v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12), v4(12, 13, 14, 15)} {
			if candidate.As4()[0] != 0 {
				list = append(list, candidate)
			}
		}
		return list
	default:
		return nil
	}
}
