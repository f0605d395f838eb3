package app

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWhatATargetSendsUnaskedIsNotLogged answers a request and then sends more, as a target that repeats what it got might. It changes the
// process's own logger, and so does not run beside other tests.
func TestWhatATargetSendsUnaskedIsNotLogged(t *testing.T) {
	var mu sync.Mutex
	var written bytes.Buffer
	flags := log.Flags()
	defer func() { log.SetFlags(flags); log.SetOutput(io.Discard) }()
	tameLibraries(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return written.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	idle := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-idle
		fmt.Fprint(conn, "S3CR3T")
		_, _ = io.Copy(io.Discard, conn)
	}()
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	close(idle)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		text := written.String()
		mu.Unlock()
		if strings.Contains(text, "Unsolicited") {
			if strings.Contains(text, "S3CR3T") {
				t.Errorf("logged: %s", text)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the library said nothing")
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
