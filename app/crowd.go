package app

import (
	"net"
	"sync"
)

// crowd bounds the connections that a listener has open; who comes beyond it waits. Unlike the one of golang.org/x/net/netutil, it lets
// handlers reach the connection itself, without whose send buffer a client that does not read would be sent megabytes before anybody notices.
type crowd struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

func newCrowd(listener net.Listener, most int) *crowd {
	return &crowd{Listener: listener, places: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept waits for a place, and then for somebody to take it.
func (c *crowd) Accept() (net.Conn, error) {
	select {
	case c.places <- struct{}{}:
	case <-c.done:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.places
		return nil, err
	}
	return &visitor{Conn: conn, leave: sync.OnceFunc(func() { <-c.places })}, nil
}

// Close also ends an Accept that waits for a place.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Listener.Close()
}

// visitor is a connection that has a place.
type visitor struct {
	net.Conn
	leave func()
}

// NetConn is the connection itself, by the name that crypto/tls gives it.
func (v *visitor) NetConn() net.Conn { return v.Conn }

// CloseWrite lets net/http say goodbye before it closes, so that an answer to a request that was not read to its end arrives.
func (v *visitor) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close gives the place to the next.
func (v *visitor) Close() error {
	defer v.leave()
	return v.Conn.Close()
}
