package horn_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// line is what lies between browser and server: a TCP proxy that can be cut, and frozen, which is worse: nobody is told.
type line struct {
	url      string
	to       string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	flow  chan struct{} // closed: bytes flow
	conns map[net.Conn]bool
}

func newLine(t *testing.T, url string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{url: "http://" + listener.Addr().String(), to: strings.TrimPrefix(url, "http://"), listener: listener,
		conns: map[net.Conn]bool{}, flow: make(chan struct{})}
	close(l.flow)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { l.carry(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.sever()
		l.thaw()
		work.Wait()
	})
	return l
}

// carry takes one connection over, both ways, until either side ends.
func (l *line) carry(from net.Conn) {
	defer l.drop(from)
	if !l.keep(from) {
		return
	}
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer l.drop(to)
	if !l.keep(to) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			l.copy(way[0], way[1])
			_, _ = from.Close(), to.Close()
		})
	}
	both.Wait()
}

func (l *line) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		flow := l.flow
		l.mu.Unlock()
		<-flow
		if _, broken := to.Write(buffer[:n]); err != nil || broken != nil {
			return
		}
	}
}

func (l *line) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.conns[c] = true
	}
	return !l.cut
}

func (l *line) drop(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// sever breaks every connection, and those that come, until mend.
func (l *line) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as when a line breaks
		}
		_ = c.Close()
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// freeze lets nothing more through, without ending anything, until thaw.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow = make(chan struct{})
}

func (l *line) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.flow:
	default:
		close(l.flow)
	}
}
