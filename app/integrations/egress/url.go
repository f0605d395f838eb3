package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// MaxURLLength is the longest target URL in bytes.
const MaxURLLength = 2048

// ErrInvalidURL is what CheckURL's errors are, by errors.Is, unless an address was refused (ErrRefused). Neither repeats the URL: it
// may hold a password.
var ErrInvalidURL = errors.New("invalid target URL")

func invalid(sentence string) error { return fmt.Errorf("%w: %s", ErrInvalidURL, sentence) }

// CheckURL judges a destination's URL when the destination is created. An address in it is judged as it will be when dialled; a
// name is not resolved, since it may resolve to anything later.
func (p Policy) CheckURL(raw string) error {
	if len(raw) > MaxURLLength {
		return invalid(fmt.Sprintf("it is longer than %d bytes", MaxURLLength))
	}
	for _, r := range raw {
		if r <= ' ' || r == 0x7f || r == '\\' {
			return invalid("it holds a space, a control character or a backslash; percent-encode it")
		}
	}
	target, err := url.Parse(raw)
	switch {
	case err != nil:
		return invalid("it cannot be read as a URL; write it as https://host/path")
	case target.Scheme != "http" && target.Scheme != "https":
		return invalid("it must start with http:// or https://")
	case target.Opaque != "" || target.Host == "":
		return invalid("it names no host; write it as https://host/path")
	case target.User != nil:
		return invalid("it holds a user name or password; deliveries are signed instead")
	case strings.Contains(raw, "#"):
		return invalid("it holds a fragment (#…), which is never sent")
	}
	if err := checkPort(target); err != nil {
		return err
	}
	return p.checkHost(target.Hostname())
}

func checkPort(target *url.URL) error {
	port := target.Port()
	if port == "" {
		if strings.HasSuffix(target.Host, ":") {
			return invalid("no port follows the colon after the host")
		}
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return invalid("its port is not a number from 1 to 65535")
	}
	return nil
}

func (p Policy) checkHost(host string) error {
	for _, r := range host {
		if r >= 0x80 {
			// A client folds circled digits and ideographic dots into 127.0.0.1; an internationalized name has an ASCII form.
			return invalid("its host is not ASCII; write an internationalized name in its xn-- form")
		}
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(name); err == nil {
		return p.Check(addr)
	}
	if err := checkName(name); err != nil {
		return err
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		// The one name whose address is known: allowed when either loopback is.
		if err := p.Check(netip.AddrFrom4([4]byte{127, 0, 0, 1})); err != nil && p.Check(netip.IPv6Loopback()) != nil {
			return err
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > 253 {
		return invalid("its host is empty or longer than 253 bytes")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return invalid("its host is not a name of letters, digits, hyphens and dots")
		}
	}
	// 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 to some resolvers and names to others; no real top-level domain is a number.
	if last := labels[len(labels)-1]; isNumber(last) {
		return invalid("its host is a number; write an IPv4 address as four decimal numbers without leading zeros")
	}
	return nil
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return strings.Trim(label[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
