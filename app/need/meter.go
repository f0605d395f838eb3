package need

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// meter counts what goes over the wire, as a client of its own.
type meter struct {
	client *http.Client
	bytes  atomic.Int64
}

func newMeter() *meter {
	m := &meter{}
	dialer := &net.Dialer{}
	m.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return metered{conn, m}, nil
		},
	}}
	return m
}

func (m *meter) close() { m.client.CloseIdleConnections() }

// metered is a connection whose bytes are counted.
type metered struct {
	net.Conn
	meter *meter
}

func (c metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.bytes.Add(int64(n))
	return n, err
}

func (c metered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.bytes.Add(int64(n))
	return n, err
}

// ProcessCPU tells how long a process has run on a processor so far, from what Linux keeps of each of its threads; it answers false elsewhere.
func ProcessCPU(pid int) func() (time.Duration, bool) {
	return func() (time.Duration, bool) {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
		if err != nil || len(threads) == 0 {
			return 0, false
		}
		total := time.Duration(0)
		for _, path := range threads {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // the thread has ended meanwhile
			}
			first, _, _ := strings.Cut(string(text), " ")
			ran, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, false
			}
			total += time.Duration(ran)
		}
		return total, true
	}
}
