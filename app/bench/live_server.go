package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/need"
	"github.com/posthorn/posthorn/realtime"
)

// LiveServer is the process that the scenarios live/* look at from outside: "hub" serves streams by package realtime, "plain" writes the same bytes with
// net/http and deadlines alone. Each line that it reads is a command, and each is answered by one line of JSON.
//
//	publish N   tell every stream N times, one after the other has been handed over
//	tell        tell every stream once, and do not wait; not answered
//	fill N      tell every stream until N of them take nothing any more
//	stats       what it holds and has spent
func LiveServer(ctx context.Context, kind string, in io.Reader, out io.Writer) error {
	var streams liveStreams
	switch kind {
	case "hub":
		hub, err := realtime.NewHub(realtime.Config{MaxConnections: 1 << 20, MaxPerUser: 1 << 20, Heartbeat: time.Hour, LifeSpan: 24 * time.Hour})
		if err != nil {
			return err
		}
		streams = &hubStreams{hub: hub}
	case "plain":
		streams = &plainStreams{open: map[chan []byte]struct{}{}}
	default:
		return fmt.Errorf("there is no server of the kind %q", kind)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: streams, ConnContext: realtime.ConnContext, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	answer := json.NewEncoder(out)
	_ = answer.Encode(map[string]string{"address": listener.Addr().String()})
	cpu := need.ProcessCPU(selfPID())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "publish":
			var n int64
			_, _ = fmt.Sscan(rest, &n)
			streams.publish(n)
			_ = answer.Encode(map[string]bool{"done": true})
		case "tell":
			streams.tell()
		case "fill":
			var n int
			_, _ = fmt.Sscan(rest, &n)
			_ = answer.Encode(map[string]int{"blocked": fill(streams, n)})
		case "stats":
			debug.FreeOSMemory() // collects twice, so that stacks shrink to what is in use
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			spent, _ := cpu()
			_ = answer.Encode(liveStats{Bytes: int64(m.HeapAlloc + m.StackInuse), Stack: int64(m.StackInuse), Goroutines: runtime.NumGoroutine(), CPU: spent, Blocked: streams.blocked()})
		}
	}
	return ctx.Err()
}

// fill returns how many streams block for good: those that still do when nothing has been told for a while.
func fill(streams liveStreams, n int) int {
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		for range 50 {
			streams.tell()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		if streams.blocked() == n {
			break
		}
	}
	time.Sleep(200 * time.Millisecond)
	return streams.blocked()
}

// liveStats is what a server holds, after a collection, and has spent.
type liveStats struct {
	Bytes, Stack int64
	Goroutines   int
	CPU          time.Duration
	Blocked      int // streams that have something to tell and do not get rid of it
}

type liveStreams interface {
	http.Handler
	// publish tells every stream of a change, the n-th.
	publish(n int64)
	// tell is one without waiting.
	tell()
	// blocked counts the streams whose client takes nothing.
	blocked() int
}

// hubStreams are the product's.
type hubStreams struct {
	hub  *realtime.Hub
	seen int64
}

func (s *hubStreams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(&realtime.Endpoint{Hub: s.hub, Authorize: func(*http.Request, []realtime.Topic) (realtime.Principal, error) {
		return realtime.Principal{User: "bench", Tenant: "main"}, nil
	}}).ServeHTTP(w, r)
}

func (s *hubStreams) publish(n int64) {
	for range n {
		s.tell()
		for s.hub.Stats().Delivered < uint64(s.seen)*uint64(s.hub.Stats().Connections) {
			time.Sleep(time.Millisecond)
		}
	}
}

func (s *hubStreams) tell() {
	s.seen++
	_ = s.hub.Publish("main", realtime.Notification{Topic: "backlog", ID: strings.Repeat("x", 60), Version: s.seen, Change: "changed", Freshness: realtime.Immediate()})
}

func (s *hubStreams) blocked() int { return s.hub.Stats().Queued } // of one topic, so each counts once

// plainStreams are the least that streaming costs with net/http: a goroutine of the server's for each, waiting for bytes, and a deadline for each write.
type plainStreams struct {
	mu   sync.Mutex
	open map[chan []byte]struct{}
	seen int64
	left sync.WaitGroup
}

func (s *plainStreams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 1)
	s.mu.Lock()
	s.open[events] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, events)
	}()
	control := http.NewResponseController(w)
	write := func(text []byte) bool {
		if control.SetWriteDeadline(time.Now().Add(30*time.Second)) != nil {
			return false
		}
		if _, err := w.Write(text); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if !write([]byte("id: 0123456789abcdef-0\nevent: hello\ndata: {\"epoch\":\"0123456789abcdef\",\"heartbeat_ms\":3600000,\"life_span_ms\":86400000,\"resumed\":false}\nretry: 1000\n\n")) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-events:
			ok := write(text)
			s.left.Done()
			if !ok {
				return
			}
		}
	}
}

func (s *plainStreams) publish(n int64) {
	for range n {
		s.seen++
		text := fmt.Appendf(nil, "id: 0123456789abcdef-%d\nevent: notification\ndata: {\"topic\":\"backlog\",\"resource\":%q,\"version\":%d,\"change\":\"changed\",\"freshness\":{\"mode\":\"immediate\"}}\n\n",
			s.seen, strings.Repeat("x", 60), s.seen)
		s.mu.Lock()
		s.left.Add(len(s.open))
		for events := range s.open {
			events <- text
		}
		s.mu.Unlock()
		s.left.Wait()
	}
}

func (s *plainStreams) tell() { s.publish(1) }

func (s *plainStreams) blocked() int { return 0 }
