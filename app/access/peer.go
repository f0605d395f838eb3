package access

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/posthorn/posthorn/outbox"
)

// ErrPeerRefused: the other end of the unix socket is not the user whose process this is, nor root.
var ErrPeerRefused = fmt.Errorf("%w: the unix socket serves only the user whose process this is, and root", ErrForbidden)

// LocalPrincipal is the user whose process this is, as whoever can read its files anyway.
func LocalPrincipal() Principal { return local(os.Geteuid()) }

func local(uid int) Principal {
	return Principal{Actor: "os:" + userName(uid), Tenant: outbox.MainTenant, Role: Admin}
}

// userName names a user for the audit; a user without a name, or with one that could be mistaken, is named by number.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	known, err := user.LookupId(number)
	if err != nil || known.Username == "" || len(known.Username) > 64 || strings.ContainsFunc(known.Username, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return number
	}
	return known.Username
}

// admit decides about a peer by its user.
func admit(peer, own int) (Principal, error) {
	if peer != own && peer != 0 {
		return Principal{}, ErrPeerRefused
	}
	return local(peer), nil
}
