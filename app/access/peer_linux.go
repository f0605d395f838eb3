package access

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerPrincipal asks the kernel who is at the other end of a unix socket. Only the user whose process this is and root are admitted,
// as admin; the error is otherwise ErrPeerRefused.
func PeerPrincipal(conn net.Conn) (Principal, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return Principal{}, fmt.Errorf("%w: the connection is no unix socket", ErrPeerRefused)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return Principal{}, fmt.Errorf("ask for the peer of a unix socket: %w", err)
	}
	var peer *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Principal{}, fmt.Errorf("ask for the peer of a unix socket: %w", err)
	}
	if asked != nil {
		return Principal{}, fmt.Errorf("ask for the peer of a unix socket: %w", asked)
	}
	return admit(int(peer.Uid), os.Geteuid())
}
