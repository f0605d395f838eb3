package outbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a message does when it is attempted, for good or until it is replayed.
const (
	actDeliver = iota
	actRetry   // later, once, then deliver
	actReject
	actFail // at the bound
	actHang // until the process ends, which is its last charged attempt
	acts    // how many there are
)

// ordered is a delivery as the model of an ordered lane has it.
type ordered struct {
	key    string
	act    int
	state  StateName
	blocks bool
}

// orderModel says what becomes of each delivery when everything that can go on has gone on.
type orderModel struct {
	list []*ordered
	skip bool // the handler's mode
}

func (m *orderModel) dies(o *ordered) {
	o.state, o.blocks = StateDeadLetter, o.blocks && !m.skip
}

func (m *orderModel) held(i int) bool {
	for _, o := range m.list[:i] {
		if o.blocks && o.key == m.list[i].key {
			return m.list[i].blocks
		}
	}
	return false
}

// settle goes on until nothing can.
func (m *orderModel) settle() {
	for changed := true; changed; {
		changed = false
		for i, o := range m.list {
			if o.state != StatePending || m.held(i) {
				continue
			}
			changed = true
			switch o.act {
			case actDeliver, actRetry:
				o.state, o.blocks = StateDispatched, false
			case actReject, actFail:
				m.dies(o)
			default:
				o.state = StateProcessing
			}
		}
	}
}

func (m *orderModel) setSkip(skip bool) {
	m.skip = skip
	for _, o := range m.list {
		if skip && o.state == StateDeadLetter {
			o.blocks = false
		}
	}
}

func (m *orderModel) crash(skip bool) {
	m.setSkip(skip)
	for _, o := range m.list {
		if o.state == StateProcessing {
			m.dies(o)
		}
	}
}

// find picks one of the deliveries that are in a state.
func (m *orderModel) find(rt *rapid.T, state StateName) (id DeliveryID, found bool) {
	var ids []int
	for i, o := range m.list {
		if o.state == state {
			ids = append(ids, i+1)
		}
	}
	if len(ids) == 0 {
		return 0, false
	}
	return DeliveryID(rapid.SampledFrom(ids).Draw(rt, string(state))), true
}

// TestOrderSimulation holds an ordered lane against a model: every outcome, with and without a key, while dead letters hold back and while they
// are passed, across crashes, restarts, operators' changes and switches of the mode at any time.
func TestOrderSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &orderModel{skip: rapid.Bool().Draw(rt, "skip")}
		var mu sync.Mutex // guards what the handler reads
		plan := map[DeliveryID]int{}
		tried := map[DeliveryID]bool{}
		handle := func(ctx context.Context, d Delivery) error {
			mu.Lock()
			act, again := plan[d.ID], tried[d.ID]
			tried[d.ID] = true
			mu.Unlock()
			switch act {
			case actRetry:
				if !again {
					return Snooze(time.Millisecond)
				}
			case actReject:
				return Permanent(errors.New("no"))
			case actFail:
				return errors.New("failed")
			case actHang:
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		h := func() Handler {
			h := outside("h", 64, handle)
			h.SkipDeadLetters, h.Timeout = m.skip, time.Hour
			return h
		}
		path := filepath.Join(t.TempDir(), fmt.Sprintf("order-%d.db", time.Now().UnixNano()))
		var b *bed
		var d *Dispatcher
		open := func() {
			b = openBed(t, path)
			b.do(t, func(ctx context.Context, tx *Tx) error {
				return DeclareTypes(ctx, tx, []TypeVersion{{Type: "thing-done", SchemaVersion: 1}})
			})
			d = b.dispatcher(t, Config{Retry: RetryPolicy{MaxAttempts: 1}, Poll: 20 * time.Millisecond}, h())
		}
		open()
		crash := func(skip bool) {
			d.crash()
			b.close()
			m.crash(skip)
			open()
		}
		check := func(step string) {
			m.settle()
			var differs string
			for range 2000 {
				if differs = m.differs(rt, b); differs == "" {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			rt.Fatalf("after %s: %s", step, differs)
		}
		for range rapid.IntRange(2, 10).Draw(rt, "steps") {
			step := rapid.SampledFrom([]string{"stage", "stage", "stage", "switch", "restart", "replay", "skip", "cancel"}).Draw(rt, "step")
			switch step {
			case "stage":
				var batch []Message
				for range rapid.IntRange(1, 6).Draw(rt, "batch") {
					e := event(len(m.list))
					e.OrderingKey = rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key")
					o := &ordered{key: e.OrderingKey, act: rapid.IntRange(0, acts-1).Draw(rt, "act"), state: StatePending, blocks: e.OrderingKey != ""}
					m.list = append(m.list, o)
					mu.Lock()
					plan[DeliveryID(len(m.list))] = o.act
					mu.Unlock()
					batch = append(batch, e)
				}
				b.stage(t, batch...)
			case "switch":
				m.setSkip(!m.skip)
				if err := d.Register(context.Background(), h()); err != nil {
					rt.Fatal(err)
				}
			case "restart": // which is a crash for what hangs; the operator may have changed the mode meanwhile
				crash(rapid.Bool().Draw(rt, "skips then"))
			case "replay":
				id, found := m.find(rt, StateDeadLetter)
				if !found {
					continue
				}
				o := m.list[id-1]
				o.act, o.state = rapid.SampledFrom([]int{actDeliver, actReject}).Draw(rt, "act"), StatePending
				mu.Lock()
				plan[id] = o.act
				mu.Unlock()
				if err := b.replay(t, d, int64(id)); err != nil {
					rt.Fatal(err)
				}
			case "skip":
				id, found := m.find(rt, StateDeadLetter)
				if !found {
					continue
				}
				_, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Skip(ctx, tx, operator, id) })
				if o := m.list[id-1]; o.blocks != (err == nil) || err != nil && !errors.Is(err, ErrBlocksNothing) {
					rt.Fatalf("skip of delivery %d, which blocks: %v: %v", id, o.blocks, err)
				}
				m.list[id-1].blocks = false
			case "cancel":
				id, found := m.find(rt, StatePending)
				if !found {
					continue
				}
				if _, err := change(t, b, func(ctx context.Context, tx *Tx) (Change, error) { return d.Cancel(ctx, tx, operator, id) }); err != nil {
					rt.Fatal(err)
				}
				m.list[id-1].state, m.list[id-1].blocks = StateDeadLetter, false
			}
			check(step)
		}
		b.tallied(t, d)
		d.crash()
		b.close()
	})
}

// differs says in what the rows differ from the model.
func (m *orderModel) differs(rt *rapid.T, b *bed) string {
	rows, err := b.read.DB.Query(`SELECT id, state, coalesce(blocks, 0), coalesce(blocked, 0) FROM outbox_deliveries ORDER BY id`)
	if err != nil {
		rt.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		var id int
		var state StateName
		var blocks, blocked bool
		if err := rows.Scan(&id, &state, &blocks, &blocked); err != nil {
			rt.Fatal(err)
		}
		want := m.list[n]
		if state != want.state || blocks != want.blocks || blocked != (state == StatePending) {
			return fmt.Sprintf("delivery %d (key %q, act %d) is %s, blocks %v, is blocked %v; want %s, %v", id, want.key, want.act, state, blocks, blocked, want.state, want.blocks)
		}
	}
	if n != len(m.list) {
		return fmt.Sprintf("%d deliveries, want %d", n, len(m.list))
	}
	return ""
}
