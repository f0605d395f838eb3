package live

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// AddressBehind says from where requests come: the peer's address, and where the peer is one of the proxies, what it says of its own peer. Nobody
// else's X-Forwarded-For is believed, so that nobody can pretend to be many. Addresses of IPv6 are grouped by their /64, which is what one
// customer of a provider has.
func AddressBehind(proxies []netip.Prefix) func(*http.Request) string {
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return func(r *http.Request) string {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return "" // a unix socket
		}
		at := peer.Addr().Unmap()
		forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for _, hop := range slices.Backward(forwarded) {
			if !trusted(at) {
				break
			}
			next, ok := address(hop)
			if !ok {
				break
			}
			at = next
		}
		if at.Is6() {
			if block, err := at.WithZone("").Prefix(64); err == nil {
				return block.String()
			}
		}
		return at.String()
	}
}

// address reads a hop, with or without a port.
func address(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	if host, _, err := net.SplitHostPort(hop); err == nil {
		hop = host
	}
	a, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return a.Unmap(), err == nil
}
