package access

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestPeerIsThisUser(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p, err := PeerPrincipal(server)
	if err != nil || p != LocalPrincipal() || !p.Local() {
		t.Errorf("peer %+v, %v; want %+v", p, err, LocalPrincipal())
	}
}

func TestPeersThatAreRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := PeerPrincipal(client); !errors.Is(err, ErrPeerRefused) || !errors.Is(err, ErrForbidden) {
		t.Errorf("TCP: %v", err)
	}
	own := os.Geteuid()
	if _, err := admit(own+1, own); own+1 != 0 && !errors.Is(err, ErrPeerRefused) {
		t.Errorf("another user: %v", err)
	}
	if p, err := admit(0, 4242); err != nil || p.Actor != "os:root" && p.Actor != "os:0" {
		t.Errorf("root: %+v, %v", p, err)
	}
	if p := local(2147480000); p.Actor != "os:2147480000" {
		t.Errorf("a user without a name: %+v", p)
	}
}
