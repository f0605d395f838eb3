package realtime

import (
	"context"
	"net"
)

type connKey struct{}

// ConnContext is for http.Server.ConnContext: it lets an [Endpoint] bound the kernel's send buffer of the connections that it
// streams over, and of no others. See Config.SendBuffer.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// limitSendBuffer does what it can: a connection that has no send buffer needs no bound.
func limitSendBuffer(ctx context.Context, bytes int) {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	for c != nil {
		if b, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
			_ = b.SetWriteBuffer(bytes)
			return
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		c = wrapped.NetConn()
	}
}
