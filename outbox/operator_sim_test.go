package outbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The handlers of the simulated operators. One skips dead letters, one can be removed, one changes the database itself.
const (
	simBlocks    = HandlerName("blocks")
	simSkips     = HandlerName("skips")
	simRemovable = HandlerName("removable")
	simInTx      = HandlerName("in-tx")
)

var simHandlers = []HandlerName{simBlocks, simInTx, simRemovable, simSkips}

// operators is a simulation of people who change deliveries by hand while the rest goes on, and what they may rely on.
type operators struct {
	t    *testing.T
	rt   *rapid.T
	path string
	b    *bed
	d    *Dispatcher

	staged   map[MessageID][sha256.Size]byte
	expected map[HandlerName]int // deliveries that the handler must have, for ever
	resent   int
	audits   map[DeliveryID][]string // the failures that were answered by replays
	before   map[DeliveryID]simRow   // as they were after the step before
	replayed map[DeliveryID]bool     // in this step
	known    map[HandlerName]bool

	mu      sync.Mutex // guards what handlers read and write
	acts    map[string]int
	held    map[HandlerName]bool
	running map[string]bool
	latest  map[string]int64
	mended  bool // every target accepts
	faults  []string
}

// simRow is a delivery as stored.
type simRow struct {
	id               DeliveryID
	handler          HandlerName
	tenant           TenantID
	message          MessageID
	state            StateName
	fence            int64
	attempt, charged int
	class, failure   string
	key              string
	seq              int64
	blocks, blocked  bool
	again            bool
}

// handle is every target: it holds each attempt against what must be true of it, then answers as the run demands.
func (s *operators) handle(ctx context.Context, d Delivery) error {
	key := ""
	if d.blocks {
		key = fmt.Sprintf("%s/%s/%s", d.Handler, d.Message.Tenant, d.Message.OrderingKey)
	}
	s.mu.Lock()
	if s.held[d.Handler] {
		s.faults = append(s.faults, fmt.Sprintf("delivery %d was attempted while %s was paused", d.ID, d.Handler))
	}
	if sha256.Sum256(d.Message.Payload) != s.staged[d.Message.ID] {
		s.faults = append(s.faults, fmt.Sprintf("message %s changed its bytes", d.Message.ID))
	}
	if key != "" {
		if s.running[key] || d.Message.Seq < s.latest[key] {
			s.faults = append(s.faults, fmt.Sprintf("%s: seq %d after %d, or beside another", key, d.Message.Seq, s.latest[key]))
		}
		s.running[key], s.latest[key] = true, d.Message.Seq
	}
	act := s.acts[fmt.Sprintf("%s/%s", d.Handler, d.Message.ID)]
	if s.mended {
		act = actDeliver
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, key)
	}()
	switch {
	case act == actReject:
		return Permanent(errors.New("no"))
	case act == actFail:
		return errors.New("failed")
	case act == actRetry && d.Attempt%2 == 1:
		return Snooze(5 * time.Second)
	case act == actHang && d.Handler != simInTx: // for a while
		select {
		case <-time.After(2 * time.Second):
			if d.Attempt == 1 {
				return errors.New("failed at last")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *operators) handler(name HandlerName) Handler {
	h := outside(string(name), 8, s.handle)
	h.SkipDeadLetters = name == simSkips
	if name == simInTx {
		h.Outside, h.RepeatKey = nil, ""
		h.InTx = func(ctx context.Context, tx *Tx, d Delivery) error {
			if _, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO effects(tenant, message) VALUES (?, ?)`, string(d.Message.Tenant), string(d.Message.ID)); err != nil {
				return err
			}
			return s.handle(ctx, d)
		}
	}
	return h
}

func (s *operators) open() {
	s.b = openBedWith(s.t, s.path, WriterConfig{Deadline: time.Hour})
	s.b.do(s.t, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS effects (tenant TEXT, message TEXT, PRIMARY KEY (tenant, message))`); err != nil {
			return err
		}
		return DeclareTypes(ctx, tx, []TypeVersion{{Type: "thing-done", SchemaVersion: 1}})
	})
	var list []Handler
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		list = append(list, s.handler(name))
	}
	s.d = s.b.dispatcher(s.t, Config{Poll: time.Hour, Retry: RetryPolicy{First: time.Second, MaxAttempts: 3}}, list...)
}

func (s *operators) close(crash bool) {
	if crash {
		s.d.crash()
	} else if err := s.d.Stop(context.Background()); err != nil {
		s.rt.Fatal(err)
	}
	s.b.close()
	clear(s.running)
}

// rows reads every delivery.
func (s *operators) rows() map[DeliveryID]simRow {
	rows, err := s.b.read.DB.Query(`SELECT d.id, d.handler, d.tenant, m.id, d.state, d.fence, d.attempt, d.charged, coalesce(d.failure_class, ''), coalesce(d.last_error, ''),
		coalesce(d.ordering_key, ''), d.seq, coalesce(d.blocks, 0), coalesce(d.blocked, 0), d.resend_of IS NOT NULL FROM outbox_deliveries d JOIN outbox_messages m ON m.seq = d.seq`)
	if err != nil {
		s.rt.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[DeliveryID]simRow{}
	for rows.Next() {
		var r simRow
		if err := rows.Scan(&r.id, &r.handler, &r.tenant, &r.message, &r.state, &r.fence, &r.attempt, &r.charged, &r.class, &r.failure, &r.key, &r.seq, &r.blocks, &r.blocked, &r.again); err != nil {
			s.rt.Fatal(err)
		}
		all[r.id] = r
	}
	return all
}

// pick draws a delivery, mostly a fitting one, and who changes it: nearly always somebody of its tenant.
func (s *operators) pick(rows map[DeliveryID]simRow, fits func(simRow) bool) (simRow, Operator, bool) {
	var any, fitting []DeliveryID
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if any = append(any, id); fits(rows[id]) {
			fitting = append(fitting, id)
		}
	}
	if len(any) == 0 {
		return simRow{}, Operator{}, false
	}
	if len(fitting) > 0 && rapid.IntRange(0, 4).Draw(s.rt, "misfit") > 0 {
		any = fitting
	}
	r := rows[rapid.SampledFrom(any).Draw(s.rt, "delivery")]
	by := Operator{Tenant: r.tenant, Actor: "os:mary", Reason: "simulated"}
	if rapid.IntRange(0, 9).Draw(s.rt, "stranger") == 0 {
		by.Tenant = "elsewhere"
	}
	return r, by, true
}

// must holds an operator's answer against what the delivery's state demands.
func (s *operators) must(what string, r simRow, by Operator, want StateName, got error, reject error) (done bool) {
	var conflict *StateConflict
	switch {
	case by.Tenant != r.tenant:
		done = errors.Is(got, ErrNoDelivery)
	case r.state != want:
		done = errors.As(got, &conflict) && conflict.State == r.state
	case reject != nil:
		done = errors.Is(got, reject)
	default:
		if got == nil {
			return true
		}
	}
	if !done {
		s.rt.Fatalf("%s of %+v by one of %s was answered %v", what, r, by.Tenant, got)
	}
	return false
}

func (r simRow) answered() string { return strings.TrimSuffix(r.class+": "+r.failure, ": ") }

func (s *operators) noteReplay(r simRow) {
	s.audits[r.id] = append(s.audits[r.id], r.answered())
	s.replayed[r.id] = true
	if rapid.Bool().Draw(s.rt, "mended") {
		s.mu.Lock()
		s.acts[fmt.Sprintf("%s/%s", r.handler, r.message)] = actDeliver
		s.mu.Unlock()
	}
}

func (s *operators) stage() {
	var batch []Message
	for range rapid.IntRange(1, 5).Draw(s.rt, "batch") {
		m := event(len(s.staged))
		m.ID = MessageID(fmt.Sprintf("m%d", len(s.staged)))
		m.Tenant = rapid.SampledFrom([]TenantID{MainTenant, "far"}).Draw(s.rt, "tenant")
		m.OrderingKey = rapid.SampledFrom([]string{"", "a", "b"}).Draw(s.rt, "key")
		acts := rapid.SliceOfN(rapid.SampledFrom([]int{actDeliver, actDeliver, actRetry, actReject, actFail, actHang}), len(simHandlers), len(simHandlers)).Draw(s.rt, "acts")
		s.mu.Lock() // after the draws, any of which may end the run
		s.staged[m.ID] = sha256.Sum256(m.Payload)
		for i, name := range simHandlers {
			s.acts[fmt.Sprintf("%s/%s", name, m.ID)] = acts[i]
			if s.known[name] {
				s.expected[name]++
			}
		}
		s.mu.Unlock()
		batch = append(batch, m)
	}
	s.b.stage(s.t, batch...)
}

func (s *operators) replayOne(rows map[DeliveryID]simRow) {
	r, by, found := s.pick(rows, func(r simRow) bool { return r.state == StateDeadLetter })
	if !found {
		return
	}
	var reject error
	if !s.known[r.handler] {
		reject = ErrUnknownHandler
	}
	if s.must("replay", r, by, StateDeadLetter, s.replayAs(by, r.id), reject) {
		s.noteReplay(r)
	}
}

func (s *operators) replayAs(by Operator, id DeliveryID) error {
	_, err := change(s.t, s.b, func(ctx context.Context, tx *Tx) (Change, error) { return s.d.Replay(ctx, tx, by, id) })
	return err
}

// replayMany is a bulk replay, or what a dry run of one does, in pages.
func (s *operators) replayMany(rows map[DeliveryID]simRow, f DeadLetters, dry bool) {
	by := Operator{Tenant: f.Tenant, Actor: "os:mary", Reason: "simulated"}
	want := map[DeliveryID]simRow{}
	for id, r := range rows {
		if r.state == StateDeadLetter && r.tenant == f.Tenant && s.known[r.handler] && (f.Handler == "" || f.Handler == r.handler) && (f.Class == "" || string(f.Class) == r.class) {
			want[id] = r
		}
	}
	var after DeadLetterPlace
	found := 0
	for done := false; !done; {
		var page []DeadLetterRef
		var err error
		if page, after, done, err = s.d.FindDeadLetters(context.Background(), f, after, 3); err != nil {
			if !s.known[f.Handler] && errors.Is(err, ErrUnknownHandler) {
				return
			}
			s.rt.Fatal(err)
		}
		for _, ref := range page {
			r, ok := want[ref.ID]
			if !ok {
				s.rt.Fatalf("%+v found delivery %d, which it does not mean or has found before", f, ref.ID)
			}
			delete(want, ref.ID)
			found++
			if !dry {
				s.noteReplay(r)
			}
		}
		if dry || len(page) == 0 {
			continue
		}
		left := len(page)
		if rapid.IntRange(0, 3).Draw(s.rt, "beaten to it") == 0 {
			// Somebody replays the first of them by itself, and it may have died again when the others are.
			if err := s.replayAs(by, page[0].ID); err != nil {
				s.rt.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			left--
		}
		made, err := change(s.t, s.b, func(ctx context.Context, tx *Tx) ([]Change, error) { return s.d.ReplayFound(ctx, tx, by, page) })
		if err != nil || len(made) != left {
			s.rt.Fatalf("replayed %d of %d: %v", len(made), left, err)
		}
	}
	if len(want) > 0 {
		s.rt.Fatalf("%+v found %d and missed %v", f, found, slices.Sorted(maps.Keys(want)))
	}
}

func (s *operators) resend(rows map[DeliveryID]simRow) {
	r, by, found := s.pick(rows, func(r simRow) bool { return r.state == StateDispatched })
	if !found {
		return
	}
	sent, want := map[HandlerName]bool{}, 0
	for _, o := range rows {
		if o.message == r.message && o.state == StateDispatched && !sent[o.handler] {
			if sent[o.handler] = true; s.known[o.handler] {
				want++
			}
		}
	}
	made, err := change(s.t, s.b, func(ctx context.Context, tx *Tx) ([]DeliveryID, error) { return s.d.Resend(ctx, tx, by, r.message, "") })
	var reject error
	switch {
	case by.Tenant != r.tenant:
		want, reject = 0, ErrNoMessage
	case len(sent) == 0:
		reject = ErrNotDispatched
	case want == 0:
		reject = ErrUnknownHandler
	}
	if !errors.Is(err, reject) || len(made) != want {
		s.rt.Fatalf("resend of %s made %d deliveries, want %d: %v, want %v", r.message, len(made), want, err, reject)
	}
	s.resent += want
}

func (s *operators) step() {
	rows := s.rows()
	switch step := rapid.SampledFrom([]string{
		"stage", "stage", "stage", "pass time", "replay", "replay", "bulk replay", "dry run", "cancel", "skip", "resend", "pause", "resume", "remove", "restart", "crash",
	}).Draw(s.rt, "step"); step {
	case "stage":
		s.stage()
	case "pass time":
		time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, time.Minute}).Draw(s.rt, "time"))
	case "replay":
		s.replayOne(rows)
	case "bulk replay", "dry run":
		f := DeadLetters{Tenant: rapid.SampledFrom([]TenantID{MainTenant, "far"}).Draw(s.rt, "tenant"),
			Handler: rapid.SampledFrom(append(simHandlers, "")).Draw(s.rt, "handler"), Class: rapid.SampledFrom([]Class{"", Rejected, Failed}).Draw(s.rt, "class")}
		s.replayMany(rows, f, step == "dry run")
	case "cancel":
		if r, by, found := s.pick(rows, func(r simRow) bool { return r.state == StatePending }); found {
			_, err := change(s.t, s.b, func(ctx context.Context, tx *Tx) (Change, error) { return s.d.Cancel(ctx, tx, by, r.id) })
			s.must(step, r, by, StatePending, err, nil)
		}
	case "skip":
		if r, by, found := s.pick(rows, func(r simRow) bool { return r.state == StateDeadLetter && r.blocks }); found {
			var reject error
			if !r.blocks {
				reject = ErrBlocksNothing
			}
			_, err := change(s.t, s.b, func(ctx context.Context, tx *Tx) (Change, error) { return s.d.Skip(ctx, tx, by, r.id) })
			s.must(step, r, by, StateDeadLetter, err, reject)
		}
	case "resend":
		s.resend(rows)
	case "pause", "resume":
		name := rapid.SampledFrom(simHandlers).Draw(s.rt, "handler")
		s.hold(name, step == "pause")
	case "remove":
		if s.known[simRemovable] {
			if _, err := s.d.Remove(context.Background(), simRemovable, "deleted"); err != nil {
				s.rt.Fatal(err)
			}
			delete(s.known, simRemovable)
			s.setHeld(simRemovable, false)
			time.Sleep(3 * time.Second) // what runs ends
			synctest.Wait()
			for _, r := range s.rows() {
				if r.handler == simRemovable && (r.state == StatePending || r.state == StateProcessing || r.blocks) {
					s.rt.Fatalf("left of a removed handler: %+v", r)
				}
			}
		} else {
			s.bringBack()
		}
	default:
		s.close(step == "crash")
		s.open()
	}
}

func (s *operators) bringBack() {
	if err := s.d.Register(context.Background(), s.handler(simRemovable)); err != nil {
		s.rt.Fatal(err)
	}
	s.known[simRemovable] = true
}

func (s *operators) hold(name HandlerName, held bool) {
	var err error
	if held {
		err = s.d.Hold(context.Background(), name, "paused")
	} else {
		s.setHeld(name, false)
		err = s.d.Resume(context.Background(), name)
	}
	if !s.known[name] {
		if !errors.Is(err, ErrUnknownHandler) {
			s.rt.Fatalf("hold of a handler that is not there: %v", err)
		}
		return
	}
	if err != nil {
		s.rt.Fatal(err)
	}
	if held {
		s.setHeld(name, true)
	}
}

func (s *operators) setHeld(name HandlerName, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = held
}

// TestOperatorSimulation lets operators replay, cancel, skip, send again, pause, remove and restart at random while messages are staged,
// fail and are delivered, and holds the rows and the counts against a model after every step.
func TestOperatorSimulation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		// rapid asks a *testing.T for its deadline, which the bubble forbids.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			n++
			s := &operators{
				t: t, rt: rt, path: filepath.Join(t.TempDir(), fmt.Sprintf("operators-%d.db", n)),
				staged: map[MessageID][sha256.Size]byte{}, expected: map[HandlerName]int{}, audits: map[DeliveryID][]string{}, replayed: map[DeliveryID]bool{},
				known: map[HandlerName]bool{simBlocks: true, simSkips: true, simRemovable: true, simInTx: true},
				acts:  map[string]int{}, held: map[HandlerName]bool{}, running: map[string]bool{}, latest: map[string]int64{},
			}
			s.open()
			for range rapid.IntRange(5, 25).Draw(rt, "steps") {
				s.step()
				s.check()
			}
			s.end()
			s.close(false)
		})
	})
}
