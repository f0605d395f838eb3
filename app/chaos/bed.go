//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	mainTenant  = "main"
	otherTenant = "other"
)

// The policy that every bed runs with: short enough that a run sees retries and expired leases.
const (
	retryFirst  = 100 * time.Millisecond
	retryCap    = time.Second
	retryJitter = 0.2
	retryBound  = 100 // a crash charges what it interrupts
	attemptTime = 2 * time.Second
	leaseGrace  = time.Second
	leaseTime   = attemptTime + leaseGrace
	askedWait   = time.Second // by Retry-After
)

const bedConfig = `
egress:
  allow: ["127.0.0.0/8"]
settings:
  retry-first: {value: 100ms, observation: "a proof cannot wait for seconds"}
  retry-cap: {value: 1s, observation: "a proof cannot wait for seconds"}
  retry-attempts: {value: %d, observation: "a kill charges what it interrupts"}
  delivery-timeout: {value: 2s, observation: "a proof waits for expired leases"}
  lease-grace: {value: 1s, observation: "a proof waits for expired leases"}
  drain-timeout: {value: 5s, observation: "a proof stops often"}
  breaker-probe-first: {value: 100ms, observation: "a proof cannot wait for seconds"}
  breaker-probe-cap: {value: 1s, observation: "a proof cannot wait for seconds"}
`

// destination is one handler that a bed has.
type destination struct {
	name, tenant string
	types        string
	url          string // empty: at the receiver
	share        float64
	misdeeds     []misdeed
	// endless: what is sent there is never delivered, so that nobody waits for it.
	endless bool
	timeout string
}

// standard is what a bed has unless its fault says otherwise: three handlers of one tenant, one of another, one that refuses for good.
func standard() []destination {
	return []destination{
		{name: "plain", tenant: mainTenant, types: "order-*"},
		{name: "slow", tenant: mainTenant, types: "order-*", share: 0.1, misdeeds: []misdeed{late}},
		{name: "flaky", tenant: mainTenant, types: "order-*", share: 0.15, misdeeds: []misdeed{answer500, answer503Asked, resetBefore, resetAfter500, handled500}},
		{name: "elsewhere", tenant: otherTenant, types: "order-*", share: 0.05, misdeeds: []misdeed{answer500}},
		{name: "doom", tenant: mainTenant, types: "doom-*", share: 1, misdeeds: []misdeed{answer422}},
	}
}

// bed is one data folder with a program on it, a receiver, and the model of what both should agree on.
type bed struct {
	name    string
	machine *machine
	seed    uint64
	// journals is the folder outside the mount; mount holds the data folder.
	journals, mount string
	bound           int // charged attempts
	destinations    []destination
	program         *program
	receiver        *receiver
	ledger          *ledger
	load            *load
	client          *http.Client
	tokens          map[string]string
	application     *application // nil unless the program works beside one
	image           *image       // nil unless the fault needs one
	tmpfs           *tmpfs

	refusals, resolved atomic.Int64
	// loose holds the boots in which the process was stopped or its clock moved.
	loose map[int]bool
	// slowest is the longest that a start behind a crowd took.
	slowest time.Duration
	// purging: what was dispatched may be gone.
	purging bool
	// audited: every delivery to doom was replayed once.
	audited bool

	mu         sync.Mutex
	violations []violation
	letters    map[string]letter
	cleanups   []func()
}

// violation is a broken promise, with what shows it.
type violation struct {
	Invariant string `json:"invariant"`
	Sentence  string `json:"sentence"`
}

// violate notes a broken promise. What is seen once somebody has ended the proof by hand may be of that hand's making, and is not judged.
func (b *bed) violate(invariant, format string, args ...any) {
	if b.machine.stopped.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := (violation{invariant, fmt.Sprintf(format, args...)}); !slices.Contains(b.violations, v) {
		b.violations = append(b.violations, v)
	}
}

func (b *bed) randomFor(number int) *rand.Rand {
	return rand.New(rand.NewPCG(b.seed, uint64(number)))
}

// options say how a bed differs from the usual one.
type options struct {
	destinations []destination
	workers      int
	pace         time.Duration // between two commands of a worker: where the fault takes its time, what is sent meanwhile has to be delivered too
	bound        int
	settings     string // more lines of the configuration's settings
	image        bool
	tmpfs        int  // MiB; 0: none
	beside       bool // another program's database
	env          []string
	start        func(*exec.Cmd) error
}

// newBed prepares a bed and starts its program.
func newBed(ctx context.Context, m *machine, name string, o options) (_ *bed, err error) {
	if o.destinations == nil {
		o.destinations = standard()
	}
	if o.workers == 0 {
		o.workers = 8
	}
	if o.bound == 0 {
		o.bound = retryBound
	}
	b := &bed{name: name, machine: m, seed: m.seed, bound: o.bound, destinations: o.destinations, tokens: map[string]string{}, loose: map[int]bool{}, letters: map[string]letter{},
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
	defer func() {
		if err != nil {
			b.close()
			err = fmt.Errorf("prepare bed %s: %w", name, err)
		}
	}()
	if err := b.folders(o); err != nil {
		return nil, err
	}
	if o.beside {
		o.workers = -1 // the other program is the load
	}
	if b.ledger, err = newLedger(filepath.Join(b.journals, "commands.jsonl")); err != nil {
		return nil, err
	}
	if b.receiver, err = newReceiver(b); err != nil {
		return nil, err
	}
	b.load = newLoad(b, o.workers)
	b.load.pace = o.pace
	b.program.env = append(b.program.env, o.env...)
	b.program.begin = o.start
	if o.beside {
		if err := b.moveIn(ctx); err != nil {
			return nil, err
		}
	}
	return b, b.provision(ctx)
}

// folders makes the folders, on a mount of their own where the fault needs one, for the program's own user.
func (b *bed) folders(o options) (err error) {
	base := filepath.Join(b.machine.work, b.name)
	b.journals, b.mount = filepath.Join(base, "journals"), filepath.Join(base, "mount")
	for _, folder := range []string{b.journals, b.mount} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	b.cleanups = append(b.cleanups, func() {
		if !b.machine.keep {
			_ = os.RemoveAll(base)
		}
	})
	if o.image {
		if b.image, err = newImage(filepath.Join(base, "outer"), b.mount); err != nil {
			return err
		}
		b.cleanups = append(b.cleanups, b.image.close)
	}
	if o.tmpfs > 0 {
		if b.tmpfs, err = newTmpfs(b.mount, o.tmpfs); err != nil {
			return err
		}
		b.cleanups = append(b.cleanups, b.tmpfs.close)
	}
	data, ready := filepath.Join(b.mount, "data"), filepath.Join(base, "ready")
	for _, folder := range []string{data, ready} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if u := b.machine.user; u != nil {
			if err := os.Chown(folder, int(u.Uid), int(u.Gid)); err != nil {
				return fmt.Errorf("give folder to the program's user: %w", err)
			}
		}
	}
	b.program = &program{binary: b.machine.binary, dir: data, ready: filepath.Join(ready, "ready.json"), user: b.machine.user}
	if mutant := b.machine.mutant; mutant != "" {
		b.program.env = append(b.program.env, "POSTHORN_MUTANT="+mutant)
	}
	return writeSynced(filepath.Join(data, "posthorn.yaml"), fmt.Appendf(nil, bedConfig+o.settings, b.bound))
}

// writeSynced writes a file of ours so that a power cut leaves it alone: what the program writes has to see to that itself.
func writeSynced(path string, text []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(text)
	folder, openErr := os.Open(filepath.Dir(path))
	if err := errors.Join(err, file.Sync(), file.Close(), openErr); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// moveIn has another program make its database, and brings the outbox into it.
func (b *bed) moveIn(ctx context.Context) (err error) {
	db := filepath.Join(b.program.dir, "app.db")
	if b.application, err = newApplication(b, db); err != nil {
		return err
	}
	b.program.db = db
	_, err = b.program.run(ctx, "install", "--yes")
	return err
}

// provision declares the types, makes the API tokens, starts the program and creates the destinations.
func (b *bed) provision(ctx context.Context) error {
	for _, kind := range []string{keyedType, doomedType} {
		if _, err := b.program.run(ctx, "records", "new", "integration-event", kind, "--trust", "authoritative", "--schema-version", "1"); err != nil {
			return err
		}
	}
	for _, tenant := range []string{mainTenant, otherTenant} {
		text, err := b.program.run(ctx, "tokens", "create", "--role", "admin", "--tenant", tenant, "--json")
		if err != nil {
			return err
		}
		var made struct{ Token string }
		if err := json.Unmarshal(text, &made); err != nil || made.Token == "" {
			return fmt.Errorf("read API token: %w", err)
		}
		b.tokens[tenant] = made.Token
	}
	if _, err := b.program.start(ctx); err != nil {
		return err
	}
	for i, d := range b.destinations {
		if d.url == "" {
			b.destinations[i].url = b.receiver.url(d.name)
		}
		if err := b.create(b.destinations[i]); err != nil {
			return err
		}
	}
	if b.application != nil {
		return nil // it has documents of its own
	}
	for _, tenant := range []string{mainTenant, otherTenant} {
		status, text := b.call(tenant, http.MethodPost, "/v1/transactions", `{"changes":[{"op":"put","collection":"orders","id":"taken","body":{}}]}`)
		if status != http.StatusCreated {
			return fmt.Errorf("put first document: %d %s", status, text)
		}
	}
	return nil
}

func (b *bed) create(d destination) error {
	timeout := d.timeout
	if timeout == "" {
		timeout = attemptTime.String()
	}
	status, text := b.call(d.tenant, http.MethodPost, "/v1/destinations",
		fmt.Sprintf(`{"name":%q,"kind":"webhook","url":%q,"types":[%q],"timeout":%q}`, d.name, d.url, d.types, timeout))
	var created struct{ Secret string }
	if err := json.Unmarshal(text, &created); status != http.StatusCreated || err != nil {
		return fmt.Errorf("create destination %s: %d %s", d.name, status, text)
	}
	return b.receiver.know(d, created.Secret)
}

// call makes one request as a tenant's admin; status 0 when there was no answer.
func (b *bed) call(tenant, method, path, body string, headers ...string) (int, []byte) {
	request, err := http.NewRequestWithContext(context.Background(), method, b.program.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+b.tokens[tenant])
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

// restart starts the program after its end, learns what became of the commands whose answer was lost, and is ready for more load.
func (b *bed) restart(ctx context.Context) error {
	b.client.CloseIdleConnections()
	b.receiver.quiet(3 * time.Second)
	b.receiver.nextBoot()
	if _, err := b.program.start(ctx); err != nil {
		return err
	}
	return b.resolve(ctx)
}

// run lets the load run for a while; the program may end meanwhile.
func (b *bed) run(ctx context.Context, d time.Duration) {
	b.load.start(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// waiting counts the deliveries that are still to come, without the endless ones.
func (b *bed) waiting() (int64, error) {
	endless := map[string]bool{}
	for _, d := range b.destinations {
		endless[d.name] = d.endless
	}
	return b.backlog(func(handler string) bool { return !endless[handler] })
}

// pending counts all the deliveries that are still to come.
func (b *bed) pending() (int64, error) { return b.backlog(func(string) bool { return true }) }

// backlog adds up what the API tells of some handlers.
func (b *bed) backlog(counts func(handler string) bool) (sum int64, err error) {
	for _, tenant := range []string{mainTenant, otherTenant} {
		var said struct {
			Handlers []struct {
				Handler             string
				Pending, Processing int64
			}
		}
		status, text := b.call(tenant, http.MethodGet, "/v1/backlog", "")
		if err := json.Unmarshal(text, &said); status != http.StatusOK || err != nil {
			return 0, fmt.Errorf("read backlog: %d %.200s", status, text)
		}
		for _, h := range said.Handlers {
			if counts(h.Handler) {
				sum += h.Pending + h.Processing
			}
		}
	}
	return sum, nil
}

// countLag is how long the backlog may take to show what was staged, and more.
const countLag = 600 * time.Millisecond

// drain waits until everything is delivered. What does not move for long is stuck.
func (b *bed) drain(ctx context.Context) error {
	last, moved, empty := int64(-1), time.Now(), time.Time{}
	for ctx.Err() == nil {
		n, err := b.waiting()
		if err != nil {
			return fmt.Errorf("drain: %w: %s", err, b.program.log.last(3))
		}
		if n > 0 {
			empty = time.Time{}
		} else if empty.IsZero() {
			empty = time.Now()
		} else if time.Since(empty) > countLag {
			return nil
		}
		if n != last {
			last, moved = n, time.Now()
		}
		if time.Since(moved) > 20*time.Second {
			b.violate("delivery", "%d deliveries did not move for 20 seconds", n)
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// finish drains, stops the program in good order, and checks everything.
func (b *bed) finish(ctx context.Context) error {
	b.load.stop()
	if b.program.gone() {
		if err := b.restart(ctx); err != nil {
			return err
		}
	}
	if err := b.resolve(ctx); err != nil {
		return err
	}
	if err := b.drain(ctx); err != nil {
		return err
	}
	b.program.signal(syscall.SIGTERM)
	if !b.program.wait(15 * time.Second) {
		b.violate("stop", "the program did not end within 15 seconds of SIGTERM")
		b.program.kill()
	} else if code := b.program.exitCode(); code != 0 {
		b.violate("stop", "the program ended with %d after SIGTERM: %s", code, b.program.log.last(3))
	}
	b.receiver.quiet(3 * time.Second)
	return b.check()
}

// close ends what the bed started.
func (b *bed) close() {
	if b.load != nil {
		b.load.stop()
	}
	if b.application != nil {
		b.application.kill()
	}
	if b.program != nil {
		b.program.signal(syscall.SIGCONT)
		b.program.kill()
	}
	var errs []error
	if b.program != nil && b.machine.keep {
		errs = append(errs, os.WriteFile(filepath.Join(b.journals, "program.log"), []byte(b.program.log.last(1<<20)), 0o644))
	}
	if b.receiver != nil {
		errs = append(errs, b.receiver.close())
	}
	if b.ledger != nil {
		errs = append(errs, b.ledger.close())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	b.client.CloseIdleConnections()
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		b.cleanups[i]()
	}
}
