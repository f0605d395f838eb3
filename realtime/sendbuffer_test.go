package realtime

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
)

type buffered struct {
	net.Conn
	set int
}

func (b *buffered) SetWriteBuffer(n int) error { b.set = n; return nil }

func TestSendBuffer(t *testing.T) {
	t.Parallel()
	plain := &buffered{}
	limitSendBuffer(ConnContext(t.Context(), plain), 32<<10)
	if plain.set != 32<<10 {
		t.Errorf("send buffer of a connection is %d", plain.set)
	}
	under := &buffered{}
	limitSendBuffer(ConnContext(t.Context(), tls.Server(under, nil)), 32<<10)
	if under.set != 32<<10 {
		t.Errorf("send buffer under TLS is %d", under.set)
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	limitSendBuffer(ConnContext(t.Context(), here), 32<<10)
	limitSendBuffer(context.Background(), 32<<10)
}
