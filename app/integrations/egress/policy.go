package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrRefused is what every refusal of an address is, by errors.Is.
var ErrRefused = errors.New("address refused")

// RefusedError says which address was refused and why. It is a mistake of configuration, of the destination's or of the operator's.
type RefusedError struct {
	Addr   netip.Addr
	Reason string       // such as "a loopback address"
	Range  netip.Prefix // what the allow list would need; invalid when nothing may allow it
}

// Error names the address, the reason and what an operator can do.
func (e *RefusedError) Error() string {
	if !e.Range.IsValid() {
		return fmt.Sprintf("address %s refused: it is %s, which is never allowed", e.Addr, e.Reason)
	}
	return fmt.Sprintf("address %s refused: it is %s; to allow it, the operator can add egress: {allow: [%q]} to posthorn.yaml",
		e.Addr, e.Reason, e.Range)
}

// Is makes a RefusedError an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// Policy is which special ranges the operator allows beside the public internet. The zero Policy allows none.
type Policy struct {
	Allow []netip.Prefix
}

// ParseAllow makes a Policy of the list egress: {allow: [...]}: prefixes ("10.0.0.0/8") or single addresses.
func ParseAllow(list []string) (Policy, error) {
	var policy Policy
	for _, entry := range list {
		prefix, err := parsePrefix(entry)
		if err != nil {
			return Policy{}, fmt.Errorf("read egress allow list: %q is neither an address nor a prefix such as 10.0.0.0/8", entry)
		}
		policy.Allow = append(policy.Allow, prefix)
	}
	return policy, nil
}

func parsePrefix(entry string) (netip.Prefix, error) {
	if !strings.Contains(entry, "/") {
		addr, err := netip.ParseAddr(entry)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(entry)
	if err != nil {
		return netip.Prefix{}, err
	}
	// Addresses are judged unmapped, so a mapped prefix would never match anything.
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

// Check judges one address. The error is a *RefusedError.
func (p Policy) Check(addr netip.Addr) error {
	// A zone would make every prefix miss, and ::ffff:127.0.0.1 is 127.0.0.1 to the kernel.
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return &RefusedError{Addr: addr, Reason: "no address"}
	}
	if refused := judgeNever(addr, addr); refused != nil {
		return refused
	}
	if refused := p.judgeSpecial(addr, addr); refused != nil {
		return refused
	}
	for _, inner := range embedded(addr) {
		if refused := judgeNever(inner, addr); refused != nil {
			return refused
		}
		if refused := p.judgeSpecial(inner, addr); refused != nil {
			return refused
		}
	}
	return nil
}

// The judges return error, not *RefusedError, so that no nil pointer becomes an error that is not nil.

func judgeNever(addr, dialled netip.Addr) error {
	if b, found := find(never, addr); found {
		return &RefusedError{Addr: dialled, Reason: b.name}
	}
	return nil
}

func (p Policy) judgeSpecial(addr, dialled netip.Addr) error {
	b, found := find(special, addr)
	if !found && addr.Is6() && !globalUnicast.Contains(addr) {
		b, found = unassigned, true
		b.prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if !found {
		return nil
	}
	for _, prefix := range p.Allow {
		if prefix.Contains(addr) {
			return nil
		}
	}
	return &RefusedError{Addr: dialled, Reason: b.name, Range: b.prefix}
}
