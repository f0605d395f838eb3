//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// arrival is one request of the program at the receiver.
type arrival struct {
	Boot        int           `json:"boot"`
	Destination string        `json:"destination"`
	ID          string        `json:"id"`
	Kind        string        `json:"type"`
	Attempt     int           `json:"attempt"`
	Fence       int64         `json:"fence"`
	SHA256      string        `json:"sha256"`
	Signed      bool          `json:"signed"`
	Misdeed     misdeed       `json:"misdeed,omitempty"`
	Status      int           `json:"status"` // of the status line that was written; 0: none
	Asked       time.Duration `json:"asked,omitempty"`
	Began       time.Time     `json:"began"`
	Answered    time.Time     `json:"answered"` // just before the sender could learn of the outcome
	Ended       time.Time     `json:"ended"`    // nobody waits for anything any more
}

// receiver is the target of every destination.
type receiver struct {
	seed     uint64
	server   *http.Server
	listener net.Listener
	boot     atomic.Int64

	mu           sync.Mutex
	destinations map[string]destination
	secrets      map[string][]byte
	arrivals     []*arrival
	seen         map[string]int // arrivals of a message at a destination
	active       int            // requests that are being answered
	conns        map[net.Conn]bool
	misdeeds     map[misdeed]int
	held         map[string]chan struct{} // destinations that do not answer until it is closed
	alarm        func(*arrival)           // unless nil, called before an arrival is answered

	journal *bufio.Writer
	file    *os.File
}

func newReceiver(b *bed) (*receiver, error) {
	file, err := os.Create(filepath.Join(b.journals, "arrivals.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{seed: b.seed, listener: listener, destinations: map[string]destination{}, secrets: map[string][]byte{}, seen: map[string]int{},
		conns: map[net.Conn]bool{}, misdeeds: map[misdeed]int{}, held: map[string]chan struct{}{}, journal: bufio.NewWriter(file), file: file}
	r.boot.Store(1)
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ConnState: r.follow}
	go func() { _ = r.server.Serve(listener) }() // ends with close
	return r, nil
}

func (r *receiver) url(destination string) string {
	return "http://" + r.listener.Addr().String() + "/d/" + destination
}

// know learns of a destination and its signing secret.
func (r *receiver) know(d destination, secret string) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("read signing secret: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.destinations[d.name], r.secrets[d.name] = d, key
	return nil
}

// follow keeps count of the connections.
func (r *receiver) follow(conn net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(r.conns, conn)
	} else {
		r.conns[conn] = true
	}
}

// quiet waits until a program that ended has no connection and no request left here.
func (r *receiver) quiet(limit time.Duration) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		left := r.active + len(r.conns)
		r.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

func (r *receiver) nextBoot() { r.boot.Add(1) }

// hold keeps the requests of a destination without an answer until release.
func (r *receiver) hold(destination string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[destination] = make(chan struct{})
}

func (r *receiver) release(destination string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.held[destination]; c != nil {
		close(c)
		delete(r.held, destination)
	}
}

// watch has a function called for every arrival; nil ends that.
func (r *receiver) watch(alarm func(*arrival)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alarm = alarm
}

// change replaces how a destination misbehaves.
func (r *receiver) change(name string, share float64, misdeeds ...misdeed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.destinations[name]
	d.share, d.misdeeds = share, misdeeds
	r.destinations[name] = d
}

// ServeHTTP takes one webhook.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/d/")
	a := &arrival{Boot: int(r.boot.Load()), Destination: name, Began: time.Now()}
	r.mu.Lock()
	r.active++
	r.mu.Unlock()
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 32<<20))
	if err != nil || request.Method != http.MethodPost {
		// The sender's end broke off: nothing was received.
		r.done(nil)
		return
	}
	r.describe(a, request, body)
	m, gate, alarm := r.plan(a)
	a.Misdeed = m
	if alarm != nil {
		alarm(a)
	}
	if gate != nil {
		select {
		case <-gate:
		case <-request.Context().Done():
		}
	}
	defer r.done(a)
	perform(w, request, a)
}

func (r *receiver) describe(a *arrival, request *http.Request, body []byte) {
	sum := sha256.Sum256(body)
	header := request.Header
	a.ID, a.Kind, a.SHA256 = header.Get("webhook-id"), header.Get("posthorn-type"), hex.EncodeToString(sum[:])
	a.Attempt, _ = strconv.Atoi(header.Get("posthorn-attempt"))
	a.Fence, _ = strconv.ParseInt(header.Get("posthorn-fence"), 10, 64)
	r.mu.Lock()
	key := r.secrets[a.Destination]
	r.mu.Unlock()
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(a.ID + "." + header.Get("webhook-timestamp") + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		a.Signed = a.Signed || hmac.Equal([]byte(given), []byte(want))
	}
}

// patience is after how many misdeeds a target behaves towards a message, unless all its answers are misdeeds.
const patience = 3

// plan decides, by chance that a seed repeats, how an arrival is answered.
func (r *receiver) plan(a *arrival) (misdeed, chan struct{}, func(*arrival)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.destinations[a.Destination]
	name := a.Destination + "/" + a.ID
	n := r.seen[name]
	r.seen[name]++
	r.arrivals = append(r.arrivals, a)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", r.seed, name, n)
	draw := h.Sum64()
	if len(d.misdeeds) == 0 || n >= patience && d.share < 1 || float64(draw%10_000) >= d.share*10_000 {
		return "", r.held[a.Destination], r.alarm
	}
	m := d.misdeeds[(draw>>20)%uint64(len(d.misdeeds))]
	r.misdeeds[m]++
	return m, r.held[a.Destination], r.alarm
}

func (r *receiver) done(a *arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	if a == nil {
		return
	}
	a.Ended = time.Now()
	line, _ := json.Marshal(a)
	_, _ = r.journal.Write(append(line, '\n'))
}

// counted returns how many requests came, and how many of them were treated badly.
func (r *receiver) counted() (arrivals, misdeeds int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.misdeeds {
		misdeeds += n
	}
	return len(r.arrivals), misdeeds
}

func (r *receiver) close() error {
	r.mu.Lock()
	for _, gate := range r.held {
		close(gate)
	}
	r.held = map[string]chan struct{}{}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		_ = r.server.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.journal.Flush(); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return r.file.Close()
}
