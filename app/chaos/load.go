//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// worker sends commands one after another. It owns its ordering keys, so that the order in which it was answered is the order of commit.
type worker struct {
	bed    *bed
	number int
	tenant string
	random *rand.Rand
	sent   int
	places map[string]int
	open   *command // its answer was lost; nothing more is sent until that is resolved
}

const (
	keyedType  = "order-placed"
	doomedType = "doom-sealed" // its destination refuses it for good
)

// load is the traffic of one bed.
type load struct {
	bed     *bed
	workers []*worker
	fat     atomic.Int64  // how much larger a payload is than it need be
	pace    time.Duration // between two commands of a worker
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newLoad(b *bed, workers int) *load {
	l := &load{bed: b}
	for i := range max(0, workers) {
		tenant := mainTenant
		if i%4 == 3 {
			tenant = otherTenant
		}
		l.workers = append(l.workers, &worker{bed: b, number: i, tenant: tenant, random: b.randomFor(i), places: map[string]int{}})
	}
	return l
}

// start lets the workers send until stop.
func (l *load) start(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	for _, w := range l.workers {
		l.running.Go(func() {
			for ctx.Err() == nil && w.step() {
				if runtime.Gosched(); l.pace > 0 {
					time.Sleep(l.pace)
				}
			}
		})
	}
}

// stop waits until the workers have their answers, or have lost them.
func (l *load) stop() {
	if l.cancel != nil {
		l.cancel()
		l.running.Wait()
		l.cancel = nil
	}
}

// step sends one command. It answers false when its answer was lost.
func (w *worker) step() bool {
	if w.open != nil {
		return false
	}
	c := w.next()
	w.bed.ledger.send(c)
	v := w.bed.send(c)
	c.answered = v != doubtful
	w.learn(c, v)
	return v != doubtful
}

// learn takes a command's verdict.
func (w *worker) learn(c *command, v verdict) {
	w.open = nil
	switch v {
	case doubtful:
		w.open = c
		return
	case refused:
		// Its places in the order are free again.
		for _, m := range c.messages {
			if m.orderKey != "" {
				w.places[m.orderKey]--
			}
		}
	case acknowledged:
	}
	w.bed.ledger.settle(c, v)
}

// next makes a command up: a document, and one to eight messages.
func (w *worker) next() *command {
	w.sent++
	c := &command{tenant: w.tenant, key: fmt.Sprintf("w%d-%d", w.number, w.sent), boot: w.bed.program.boot}
	c.document = c.key
	c.mustFail = w.sent%9 == 0
	count := 1
	if w.sent%5 == 0 {
		count = 2 + w.random.IntN(7)
	}
	owner := w.number
	if w.tenant == otherTenant {
		owner-- // the ids of a worker of the first tenant, once more
	}
	var emits []string
	for i := range count {
		m := &message{tenant: w.tenant, kind: keyedType, id: fmt.Sprintf("m-%d-%d-%d", owner, w.sent, i)}
		if w.sent%4 != 0 {
			m.orderKey = fmt.Sprintf("key %d.%d", w.number, w.random.IntN(2))
			w.places[m.orderKey]++
			m.place = w.places[m.orderKey]
		} else if w.tenant == mainTenant && w.sent%16 == 0 {
			m.kind = doomedType
		}
		payload := w.payload(m)
		sum := sha256.Sum256([]byte(payload))
		m.sha256 = hex.EncodeToString(sum[:])
		order := ""
		if m.orderKey != "" {
			order = fmt.Sprintf(`,"ordering_key":%q`, m.orderKey)
		}
		emits = append(emits, fmt.Sprintf(`{"type":%q,"id":%q,"payload":%s%s}`, m.kind, m.id, payload, order))
		c.messages = append(c.messages, m)
	}
	changes := fmt.Sprintf(`{"op":"put","collection":"orders","id":%q,"body":{"key":%q}}`, c.document, c.key)
	if c.mustFail {
		changes += `,{"op":"put","collection":"orders","id":"taken","body":{},"if_version":0}`
	}
	c.body = fmt.Sprintf(`{"changes":[%s],"emits":[%s]}`, changes, strings.Join(emits, ","))
	return c
}

// payload holds numbers, spaces, escapes and doubled keys that would not survive being read and written again.
func (w *worker) payload(m *message) string {
	fill := strings.Repeat("abcdefghij", w.random.IntN(40)+int(w.bed.load.fat.Load())/10)
	return fmt.Sprintf(`{"tenant": %q, "id":%q,"big":12345678901234567890123,"tiny":1.0e-400, "text":"\u00e4\/ä", "a":1,"a":2 ,"fill":%q }`, m.tenant, m.id, fill)
}

// send sends a command once and says what its answer means.
func (b *bed) send(c *command) verdict {
	status, text := b.call(c.tenant, http.MethodPost, "/v1/transactions", c.body, "Idempotency-Key", c.key)
	switch {
	case status == 0:
		return doubtful
	case (status == http.StatusCreated || status == http.StatusOK) && !c.mustFail:
		return acknowledged
	case status == http.StatusConflict && c.mustFail && strings.Contains(string(text), "version-conflict"):
		return refused
	case status == http.StatusServiceUnavailable, status == http.StatusInsufficientStorage:
		b.refusals.Add(1)
		return refused
	case status == http.StatusInternalServerError && strings.Contains(string(text), "in-doubt"):
		return doubtful
	case status == http.StatusInternalServerError && strings.Contains(string(text), "store-damaged"):
		return refused
	}
	if c.mustFail && status == http.StatusCreated {
		b.violate("loss", "command %s of tenant %s was taken: the document that it should have met in another version is gone", c.key, c.tenant)
		return doubtful
	}
	b.violate("answer", "command %s of tenant %s was answered %d: %.300s", c.key, c.tenant, status, text)
	return doubtful
}

// stage sends a command of its own, outside the load: messages without ordering key, of the type that every destination gets, or, when their number
// is not one, of the type that is refused for good. A lost answer is asked for again once the program runs.
func (b *bed) stage(tenant, id string, number int) verdict {
	c := &command{tenant: tenant, key: id, document: id, boot: b.program.boot}
	var emits []string
	for i := range number {
		m := &message{tenant: tenant, kind: keyedType, id: id}
		if number > 1 {
			m.kind, m.id = doomedType, fmt.Sprintf("%s-%d", id, i)
		}
		payload := fmt.Sprintf(`{"id": %q}`, m.id)
		sum := sha256.Sum256([]byte(payload))
		m.sha256 = hex.EncodeToString(sum[:])
		c.messages = append(c.messages, m)
		emits = append(emits, fmt.Sprintf(`{"type":%q,"id":%q,"payload":%s}`, m.kind, m.id, payload))
	}
	c.body = fmt.Sprintf(`{"changes":[{"op":"put","collection":"orders","id":%q,"body":{}}],"emits":[%s]}`, id, strings.Join(emits, ","))
	b.ledger.send(c)
	v := b.send(c)
	c.answered = v != doubtful
	if v != doubtful {
		b.ledger.settle(c, v)
	}
	return v
}

// resolve sends the commands whose answer was lost again, with their keys, until each has a verdict.
func (b *bed) resolve(ctx context.Context) error {
	for _, w := range b.load.workers {
		for tries := 0; w.open != nil; tries++ {
			c := w.open
			if v := b.send(c); v == acknowledged || v == refused && c.mustFail {
				w.learn(c, v)
				b.resolved.Add(1)
				break
			}
			if ctx.Err() != nil || tries > 200 {
				return fmt.Errorf("resolve command %s: no answer: %s", c.key, b.program.log.last(3))
			}
			time.Sleep(25 * time.Millisecond)
		}
	}
	for _, c := range b.ledger.open() {
		if c.body == "" {
			continue // another program's
		}
		if v := b.send(c); v == acknowledged {
			b.ledger.settle(c, v)
			b.resolved.Add(1)
		}
	}
	return nil
}
