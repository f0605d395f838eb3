package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// loadScenarios measure what streams do to others: to a commit, and to the streams beside them.
func loadScenarios(program string) []Scenario {
	list := []Scenario{
		{Name: "live/commit/none", Unit: "ms", run: commitBeside(program, 0, commitP50)},
		{Name: "live/commit/5000", Unit: "ms", Against: "live/commit/none", run: commitBeside(program, 5000, commitP50)},
		{Name: "live/notified/p50", Unit: "ms", run: commitBeside(program, 1, notified(0.50))},
		{Name: "live/notified/p99", Unit: "ms", run: commitBeside(program, 1, notified(0.99))},
		{Name: "live/healthy/beside-none", Unit: "ms", run: healthyBeside(program, 0, 0)},
	}
	for _, hung := range []int{1, 20, 200} {
		list = append(list, Scenario{Name: "live/healthy/beside-" + strconv.Itoa(hung) + "-hung", Unit: "ms", Against: "live/healthy/beside-none", run: healthyBeside(program, hung, 0)})
	}
	return append(list, Scenario{Name: "live/healthy/beside-200-reading", Unit: "ms", Against: "live/healthy/beside-none", run: healthyBeside(program, 0, 200)})
}

// manyStreams lets one user hold what a bench opens.
const manyStreams = `settings:
  live-connections: {value: 20000, observation: "a bench is one user"}
  live-connections-user: {value: 10000, observation: "a bench is one user"}
  live-connections-address: {value: 10000, observation: "a bench is one machine"}
`

type beside struct {
	server *Server
	client *http.Client
	heard  *listeners
	length time.Duration
	n      int
}

func (b *beside) commit(ctx context.Context) error {
	b.n++
	return b.server.transaction(ctx, b.client, b.n)
}

func commitBeside(program string, streams int, figure func(context.Context, *beside) (float64, error)) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		if err := os.WriteFile(filepath.Join(dir, "posthorn.yaml"), []byte(manyStreams), 0o600); err != nil {
			return 0, err
		}
		s, err := StartServer(ctx, program, dir)
		if err != nil {
			return 0, err
		}
		defer s.Stop()
		l, err := listenToAll(ctx, strings.TrimPrefix(s.URL(), "http://"), "/v1/events?topic=backlog", map[string]string{"Authorization": "Bearer " + s.Token()}, streams)
		if err != nil {
			return 0, err
		}
		defer l.close()
		b := &beside{server: s, heard: l, length: length, client: &http.Client{Transport: &http.Transport{}}}
		defer b.client.CloseIdleConnections()
		for range 20 {
			if err := b.commit(ctx); err != nil {
				return 0, err
			}
		}
		return figure(ctx, b)
	}
}

// commitP50 is how long a transaction takes over HTTP, one a second: slow enough that every stream has been told of the one before, since readers that keep
// both cores busy would be measured otherwise.
func commitP50(ctx context.Context, b *beside) (float64, error) {
	var took []time.Duration
	for range perSecond(10*b.length, 1) {
		time.Sleep(time.Second)
		began := time.Now()
		if err := b.commit(ctx); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.5), nil
}

// notified is the time from the answer to a transaction until its notification is read.
func notified(q float64) func(context.Context, *beside) (float64, error) {
	return func(ctx context.Context, b *beside) (float64, error) {
		var took []time.Duration
		for range perSecond(10*b.length, 4) {
			time.Sleep(250 * time.Millisecond) // the pace of the topic
			before := b.heard.heard.Load()
			if err := b.commit(ctx); err != nil {
				return 0, err
			}
			committed := time.Now()
			for b.heard.heard.Load() == before {
				if time.Since(committed) > 10*time.Second {
					return 0, errors.New("no notification within ten seconds")
				}
				time.Sleep(20 * time.Microsecond)
			}
			took = append(took, time.Since(committed))
		}
		return quantile(took, q), nil
	}
}

// healthyBeside is the p99 from a notification's publication until fifty streams that read have it, beside some that hang and others that read. One
// that hangs takes events until the buffers between are full, so it is measured when that is so: before, it is one more that reads.
func healthyBeside(program string, hung, reading int) func(context.Context, string, time.Duration) (float64, error) {
	const healthy = 50
	return func(ctx context.Context, _ string, length time.Duration) (float64, error) {
		p, err := startLive(ctx, program, "hub")
		if err != nil {
			return 0, err
		}
		defer p.stop()
		for range hung {
			conn, err := hang(ctx, p.address)
			if err != nil {
				return 0, err
			}
			defer func() { _ = conn.Close() }()
		}
		if err := p.fill(hung); err != nil {
			return 0, err
		}
		others, err := listenToAll(ctx, p.address, "/?topic=backlog", nil, reading)
		if err != nil {
			return 0, err
		}
		defer others.close()
		l, err := listenToAll(ctx, p.address, "/?topic=backlog", nil, healthy)
		if err != nil {
			return 0, err
		}
		defer l.close()
		var took []time.Duration
		for i := range perSecond(length, 300) + 200 {
			began := time.Now()
			if _, err := io.WriteString(p.in, "tell\n"); err != nil {
				return 0, err
			}
			for l.heard.Load() < int64(healthy*(i+1)) {
				if time.Since(began) > 10*time.Second {
					return 0, fmt.Errorf("%d of %d heard", l.heard.Load()-int64(healthy*i), healthy)
				}
				time.Sleep(20 * time.Microsecond)
			}
			took = append(took, time.Since(began))
		}
		s, err := p.stats()
		if err != nil {
			return 0, err
		}
		return quantile(took, 0.99), hanging(s.Blocked, hung)
	}
}

// hang opens a stream and never reads.
func hang(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	_, err = io.WriteString(conn, "GET /?topic=backlog HTTP/1.1\r\nHost: bench\r\n\r\n")
	return conn, err
}

// fill has streams told of changes until so many of them take nothing any more.
func (p *liveProcess) fill(hung int) error {
	if _, err := fmt.Fprintf(p.in, "fill %d\n", hung); err != nil {
		return err
	}
	var filled struct{ Blocked int }
	if err := p.out.Decode(&filled); err != nil {
		return err
	}
	return hanging(filled.Blocked, hung)
}

func hanging(are, want int) error {
	if are != want {
		return fmt.Errorf("%d streams hang, want %d", are, want)
	}
	return nil
}

func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[min(len(took)-1, int(q*float64(len(took))))].Microseconds()) / 1000
}
