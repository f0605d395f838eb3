package app

import (
	"errors"
	"net"
	"testing"
)

// TestCrowd: who comes beyond the bound waits for a place, a place is given back once, and closing ends the wait.
func TestCrowd(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(inner, 1)
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		for {
			conn, err := c.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- conn
		}
	}()
	var guests []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range 2 {
		conn := <-accepted
		guests = append(guests, conn)
		if len(c.places) != 1 {
			t.Errorf("%d places are taken, want 1", len(c.places))
		}
		if _, ok := conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); !ok {
			t.Error("the connection itself cannot be reached")
		}
		select {
		case <-accepted:
			t.Fatal("somebody came in beyond the bound")
		default:
		}
		if len(guests) == 1 {
			_, _ = conn.Close(), conn.Close()
		}
	}
	// The second still has its place; the third waits.
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("waiting ended with %v", err)
	}
	_ = guests[1].Close()
}
