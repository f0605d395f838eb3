package outbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is the outside: what handlers received and accepted, and what the model expects. It outlives every crash.
type world struct {
	mu        sync.Mutex
	committed map[MessageID][sha256.Size]byte
	refused   map[MessageID]bool
	accepted  map[HandlerName]map[MessageID]int
	fences    map[DeliveryID]Fence
	order     map[string]int64 // the latest seq accepted, by handler and key
	faults    []string
	fail      func(Delivery) error
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// handle checks what must hold at every attempt, then answers as the run demands.
func (w *world) handle(_ context.Context, d Delivery) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := d.Message
	if w.refused[m.ID] {
		w.fault("message %s of a refused command was seen", m.ID)
	}
	if sum, ok := w.committed[m.ID]; ok && sum != sha256.Sum256(m.Payload) {
		w.fault("message %s changed its bytes", m.ID)
	}
	if d.Fence <= w.fences[d.ID] {
		w.fault("delivery %d: fence %d after %d", d.ID, d.Fence, w.fences[d.ID])
	}
	w.fences[d.ID] = d.Fence
	if key := m.OrderingKey; key != "" {
		k := string(d.Handler) + "/" + string(m.Tenant) + "/" + key
		if m.Seq < w.order[k] {
			w.fault("%s: seq %d after %d", k, m.Seq, w.order[k])
		}
		w.order[k] = m.Seq
	}
	if err := w.fail(d); err != nil {
		return err
	}
	if w.accepted[d.Handler] == nil {
		w.accepted[d.Handler] = map[MessageID]int{}
	}
	w.accepted[d.Handler][m.ID]++
	return nil
}

// crash leaves the database as a killed process would: attempts that run are never settled.
func (d *Dispatcher) crash() {
	d.mu.Lock()
	d.stopping = true
	d.outcomes, d.overdue = nil, nil
	d.mu.Unlock()
	_ = d.config.Writer.Close(context.Background())
	d.cancelRuns(errStopping)
	d.cancelLoop()
	<-d.stopped
	d.attempts.Wait()
}

// TestSimulation drives staging, failing targets, crashes and restarts at random and checks the invariants against a model.
func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, fmt.Sprintf("sim-%d.db", time.Now().UnixNano()))
		w := &world{
			committed: map[MessageID][sha256.Size]byte{}, refused: map[MessageID]bool{},
			accepted: map[HandlerName]map[MessageID]int{}, fences: map[DeliveryID]Fence{}, order: map[string]int64{},
		}
		failures := rapid.SliceOfN(rapid.IntRange(0, 9), 16, 16).Draw(rt, "failures")
		w.fail = func(d Delivery) error {
			switch failures[(int(d.Message.Seq)*7+d.Attempt)%len(failures)] {
			case 0:
				return errors.New("failed")
			case 1:
				return &Failure{Class: Unreachable, Err: errors.New("connection refused")}
			case 2:
				return RetryAfter(time.Millisecond, errors.New("slow down"))
			case 3:
				panic("a fault in the handler")
			}
			return nil
		}
		handlers := []Handler{
			{Name: "a", Routes: []Route{{Pattern: "*"}}, Outside: w.handle, RepeatKey: "message id", Concurrency: 8},
			{Name: "b", Routes: []Route{{Pattern: "thing-*"}, {Pattern: "thing-done"}}, Outside: w.handle, RepeatKey: "message id"},
			{Name: "c", Routes: []Route{{Pattern: "*"}}, InTx: func(ctx context.Context, tx *Tx, d Delivery) error {
				_, err := tx.Tx.Tx.ExecContext(ctx, `INSERT INTO effects(message) VALUES (?)`, string(d.Message.ID))
				return err
			}},
		}
		policy := RetryPolicy{First: time.Millisecond, Cap: 4 * time.Millisecond, MaxAttempts: 1000}
		var b *bed
		var d *Dispatcher
		open := func() {
			b = openBed(t, path)
			b.do(t, func(ctx context.Context, tx *Tx) error {
				if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS effects (message TEXT PRIMARY KEY)`); err != nil {
					return err
				}
				return DeclareTypes(ctx, tx, []TypeVersion{{Type: "thing-done", SchemaVersion: 1}})
			})
			d = b.dispatcher(t, Config{Retry: policy, Poll: 20 * time.Millisecond}, handlers...)
		}
		open()
		n := 0
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				d.crash()
				b.close()
				open()
			case 1: // a command that stages and then refuses
				m := event(n)
				n++
				m.ID = NewMessageID()
				w.mu.Lock()
				w.refused[m.ID] = true
				w.mu.Unlock()
				err := b.writer.Do(context.Background(), func(ctx context.Context, tx *Tx) error {
					if _, err := Stage(ctx, tx, m); err != nil {
						return err
					}
					return errors.New("the business says no")
				})
				if err == nil {
					rt.Fatal("a refused command was acknowledged")
				}
			default:
				var batch []Message
				for range rapid.IntRange(1, 5).Draw(rt, "batch") {
					m := event(n)
					n++
					m.ID = NewMessageID()
					if rapid.Bool().Draw(rt, "ordered") {
						m.OrderingKey = fmt.Sprintf("k%d", rapid.IntRange(0, 2).Draw(rt, "key"))
					}
					batch = append(batch, m)
				}
				b.stage(t, batch...)
				w.mu.Lock()
				for _, m := range batch {
					w.committed[m.ID] = sha256.Sum256(m.Payload)
				}
				w.mu.Unlock()
			}
		}
		eventually(t, "everything settled", func() bool {
			// The rows, not the backlog, which counts what arrived a little later.
			var open int
			err := b.read.DB.QueryRow(`SELECT count(*) FROM outbox_deliveries WHERE completed_at IS NULL`).Scan(&open)
			return err == nil && open == 0
		})
		w.check(rt, b)
		d.crash()
		b.close()
	})
}

func (w *world) check(rt *rapid.T, b *bed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		rt.Error(f)
	}
	for id := range w.committed {
		for _, h := range []HandlerName{"a", "b"} {
			if w.accepted[h][id] == 0 {
				rt.Errorf("%s never accepted %s", h, id)
			}
		}
	}
	var effects, states []string
	if err := b.read.NewRaw(`SELECT message FROM effects`).Scan(context.Background(), &effects); err != nil {
		rt.Fatal(err)
	}
	if len(effects) != len(w.committed) {
		rt.Errorf("%d effects of %d messages", len(effects), len(w.committed))
	}
	if err := b.read.NewRaw(`SELECT DISTINCT state FROM outbox_deliveries`).Scan(context.Background(), &states); err != nil {
		rt.Fatal(err)
	}
	if len(w.committed) > 0 && !slices.Equal(states, []string{"dispatched"}) {
		rt.Errorf("states %v at the end", states)
	}
}
