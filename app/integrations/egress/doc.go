// Package egress decides which addresses Posthorn may send to. Destinations are written by tenants, so a destination's URL is hostile
// until shown otherwise: without a guard it reaches the database's port on loopback, a router's page or a cloud's credentials.
//
// The guard stands in one place, the dialler ([Policy.Dialer]), and judges the address that is about to be dialled, after DNS: what a
// name resolved to when its destination was created says nothing about what it resolves to now. [Policy.CheckURL] asks the same
// function when a destination is created, so that a mistake is told at once; it is a courtesy, never the defence.
//
//   - Public unicast addresses are allowed.
//   - Private, loopback, shared, documentation, translation and every other special range is refused unless the operator's
//     allow list (egress: {allow: [...]} in posthorn.yaml) has it.
//   - Link-local, multicast, unspecified and cloud metadata addresses are refused whatever the list says, also when they
//     hide inside an IPv6 translation address.
//
// Whoever dials through a Policy must not use a proxy from the environment (the proxy's address would be judged, not the target's) and
// must not follow redirects without judging them.
package egress
