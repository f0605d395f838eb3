package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// LiveServerCommand is the hidden command of the program that runs LiveServer.
const LiveServerCommand = "bench-live-server"

func selfPID() int { return os.Getpid() }

// liveScenarios measure streams from outside their process: what one holds while nothing happens, and what one notification costs.
func liveScenarios(program string) []Scenario {
	var list []Scenario
	for _, n := range []int{1000, 5000} {
		count := strconv.Itoa(n)
		list = append(list,
			Scenario{Name: "live/plain/" + count + "/memory", Unit: "B", run: live(program, "plain", n, heldByEach)},
			Scenario{Name: "live/hub/" + count + "/memory", Unit: "B", Against: "live/plain/" + count + "/memory", run: live(program, "hub", n, heldByEach)},
			Scenario{Name: "live/plain/" + count + "/cpu", Unit: "µs", run: live(program, "plain", n, spentOnEach)},
			Scenario{Name: "live/hub/" + count + "/cpu", Unit: "µs", Against: "live/plain/" + count + "/cpu", run: live(program, "hub", n, spentOnEach)},
		)
	}
	return list
}

type liveRun struct {
	*liveProcess
	streams int
	empty   liveStats
	length  time.Duration
}

// heldByEach is heap and stack of an idle stream.
func heldByEach(r *liveRun) (float64, error) {
	if err := r.publish(1); err != nil { // each has written and come to rest
		return 0, err
	}
	full, err := r.stats()
	return float64(full.Bytes-r.empty.Bytes) / float64(r.streams), err
}

// spentOnEach is the server's CPU for one notification to one stream.
func spentOnEach(r *liveRun) (float64, error) {
	rounds := max(3, int(r.length.Seconds()*40_000)/r.streams)
	before, err := r.stats()
	if err != nil {
		return 0, err
	}
	collected, err := r.stats() // what a look costs itself
	if err != nil {
		return 0, err
	}
	if err := r.publish(rounds); err != nil {
		return 0, err
	}
	after, err := r.stats()
	spent := after.CPU - collected.CPU - (collected.CPU - before.CPU)
	return float64(spent.Nanoseconds()) / 1000 / float64(rounds*r.streams), err
}

func live(program, kind string, streams int, figure func(*liveRun) (float64, error)) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, _ string, length time.Duration) (float64, error) {
		p, err := startLive(ctx, program, kind)
		if err != nil {
			return 0, err
		}
		defer p.stop()
		r := &liveRun{liveProcess: p, streams: streams, length: length}
		if r.empty, err = p.stats(); err != nil {
			return 0, err
		}
		listeners, err := listenToAll(ctx, p.address, "/?topic=backlog", nil, streams)
		if err != nil {
			return 0, err
		}
		defer listeners.close()
		return figure(r)
	}
}

// liveProcess is a LiveServer in a process of its own.
type liveProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	address string
}

func startLive(ctx context.Context, program, kind string) (*liveProcess, error) {
	p := &liveProcess{cmd: exec.CommandContext(ctx, program, LiveServerCommand, kind)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.out = in, json.NewDecoder(out)
	var said struct{ Address string }
	if err := p.out.Decode(&said); err != nil {
		p.stop()
		return nil, fmt.Errorf("start the server of streams: %w", err)
	}
	p.address = said.Address
	return p, nil
}

func (p *liveProcess) publish(n int) error {
	if _, err := fmt.Fprintf(p.in, "publish %d\n", n); err != nil {
		return err
	}
	return p.out.Decode(&struct{}{})
}

func (p *liveProcess) stats() (s liveStats, err error) {
	if _, err := io.WriteString(p.in, "stats\n"); err != nil {
		return s, err
	}
	return s, p.out.Decode(&s)
}

func (p *liveProcess) stop() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// listeners are streams that are read and thrown away.
type listeners struct {
	conns []net.Conn
	work  sync.WaitGroup
	heard atomic.Int64 // notifications
}

// listenToAll opens streams and waits until each has been greeted.
func listenToAll(ctx context.Context, address, path string, headers map[string]string, n int) (*listeners, error) {
	l := &listeners{}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\nAccept: text/event-stream\r\n"
	for name, value := range headers {
		request += name + ": " + value + "\r\n"
	}
	request += "\r\n"
	greeted := make(chan bool, n)
	dialer := net.Dialer{}
	for range n {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("open %d streams: %w (ulimit -n bounds them)", n, err)
		}
		l.conns = append(l.conns, conn)
		if _, err := io.WriteString(conn, request); err != nil {
			l.close()
			return nil, err
		}
		l.work.Go(func() { l.read(conn, greeted) })
	}
	for range n {
		select {
		case ok := <-greeted:
			if !ok {
				l.close()
				return nil, errors.New("a stream was refused")
			}
		case <-time.After(30 * time.Second):
			l.close()
			return nil, errors.New("a stream was not greeted")
		}
	}
	return l, nil
}

func (l *listeners) read(conn net.Conn, greeted chan<- bool) {
	hello := false
	lines := bufio.NewReaderSize(conn, 512)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			if !hello {
				greeted <- false
			}
			return
		case strings.HasPrefix(line, "event: hello") && !hello:
			hello = true
			greeted <- true
		case strings.HasPrefix(line, "event: notification"):
			l.heard.Add(1)
		}
	}
}

func (l *listeners) close() {
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.work.Wait()
}
