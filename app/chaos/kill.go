//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

func killFaults() []fault {
	return []fault{
		{name: "kill", about: "SIGKILL at random under load", cycles: [3]int{25, 270, 3000}, seconds: 155,
			bed: options{pace: 4 * time.Millisecond}, cycle: killAtRandom},
		{name: "kill-fsync", about: "SIGKILL at the n-th fsync", needs: []need{needTrace}, cycles: [3]int{4, 15, 200}, seconds: 25, cycle: killAt("fsync,fdatasync", 12)},
		{name: "kill-connect", about: "SIGKILL at the n-th connect", needs: []need{needTrace}, cycles: [3]int{2, 8, 100}, seconds: 12, cycle: killAt("connect", 3)},
		{name: "kill-slow-disk", about: "SIGKILL while each fsync takes 25 ms", needs: []need{needTrace}, cycles: [3]int{4, 8, 100}, seconds: 8, cycle: killSlow},
		{name: "poison", about: "a message at which the process is killed: it is charged alone, and given up", cycles: [3]int{1, 1, 20}, seconds: 16,
			bed: options{bound: poisonBound, pace: 5 * time.Millisecond}, cycle: killByMessage},
		{name: "kill-100k", about: "SIGKILL with 100,000 pending; ready within 3 s", cycles: [3]int{0, 1, 3}, seconds: 20, bed: options{destinations: crowd(), pace: 20 * time.Millisecond}, cycle: killCrowd, unfinished: true},
	}
}

func killAtRandom(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.run(ctx, between(random, 5*time.Millisecond, 160*time.Millisecond))
	b.program.kill()
	b.load.stop()
	return true, b.restart(ctx)
}

// killAt kills the program as it enters a system call for the n-th time in one of its threads.
func killAt(calls string, most int) func(context.Context, *bed, *rand.Rand) (bool, error) {
	return func(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
		b.load.start(ctx)
		time.Sleep(between(random, time.Millisecond, 50*time.Millisecond))
		i, err := b.inject(calls, fmt.Sprintf("signal=KILL:when=%d", 1+random.IntN(most)))
		if err != nil {
			return false, err
		}
		fired := b.program.wait(5 * time.Second)
		i.stop()
		b.program.kill()
		b.load.stop()
		return fired, b.restart(ctx)
	}
}

// killSlow makes the time between a commit's write and its end long enough to be hit.
func killSlow(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.load.start(ctx)
	i, err := b.inject("fsync,fdatasync", "delay_enter=25ms")
	if err != nil {
		return false, err
	}
	time.Sleep(between(random, 60*time.Millisecond, 250*time.Millisecond))
	b.program.kill()
	b.load.stop()
	i.stop()
	count, _ := i.fired()
	return count > 0, b.restart(ctx)
}

func crowd() []destination {
	return []destination{
		{name: "first", tenant: mainTenant, types: "order-*", endless: true},
		{name: "second", tenant: mainTenant, types: "order-*", endless: true},
	}
}

// readyTime is how long a start may take with so many pending deliveries.
const (
	readyTime = 3 * time.Second
	crowded   = 100_000
)

// killCrowd fills the outbox, kills, and takes the time until the program says that it is ready.
func killCrowd(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	for _, d := range b.destinations {
		if status, text := b.call(d.tenant, http.MethodPost, "/v1/destinations/"+d.name+"/pause", `{"reason":"a crowd is to gather"}`); status != http.StatusOK {
			return false, fmt.Errorf("pause %s: %d %s", d.name, status, text)
		}
	}
	b.load.start(ctx)
	defer b.load.stop()
	const each = 100
	// A tenth more, for what is delivered before the kill.
	for n := 0; n < crowded/2*11/10; n += each {
		emits := make([]string, each)
		for i := range emits {
			emits[i] = fmt.Sprintf(`{"type":%q,"id":"crowd-%d-%d","payload":{"n":%d}}`, keyedType, random.Uint32(), n+i, n+i)
		}
		if status, text := b.call(mainTenant, http.MethodPost, "/v1/transactions", `{"emits":[`+strings.Join(emits, ",")+`]}`); status != http.StatusCreated {
			return false, fmt.Errorf("fill the outbox: %d %.200s", status, text)
		}
	}
	b.load.stop()
	for _, d := range b.destinations {
		if status, text := b.call(d.tenant, http.MethodPost, "/v1/destinations/"+d.name+"/resume", ""); status != http.StatusOK {
			return false, fmt.Errorf("resume %s: %d %s", d.name, status, text)
		}
	}
	time.Sleep(20 * time.Millisecond) // claims are under way
	b.program.signal(syscall.SIGKILL)
	b.program.wait(10 * time.Second)
	b.receiver.quiet(3 * time.Second)
	b.receiver.nextBoot()
	began := time.Now()
	if _, err := b.program.start(ctx); err != nil {
		return true, err
	}
	for {
		status, text := b.call(mainTenant, http.MethodGet, "/readyz", "")
		if status == http.StatusOK {
			break
		}
		if time.Since(began) > 60*time.Second {
			return true, fmt.Errorf("not ready after a minute: %d %.200s", status, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	pending, err := b.pending()
	if err != nil {
		return true, err
	}
	b.judgeReadiness(took, pending)
	b.slowest = max(b.slowest, took)
	return pending >= crowded, b.resolve(ctx)
}

// judgeReadiness: a start with a crowd pending is ready in time.
func (b *bed) judgeReadiness(took time.Duration, pending int64) {
	if took > readyTime && pending >= crowded {
		b.violate("readiness", "ready %s after a kill with %d deliveries pending, not within %s", took, pending, readyTime)
	}
}

const (
	// poison begins the id of a message at whose arrival the process is killed.
	poison = "poison-"
	// poisonBound is how many charged attempts there are before it is given up.
	poisonBound = 5
)

// killByMessage kills the process whenever one certain message arrives, until it is given up.
func killByMessage(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	id := fmt.Sprintf("%s%d", poison, random.Uint32())
	hit := make(chan struct{}, 1000)
	var mending sync.RWMutex // while the last kill is being mended there is no other
	b.receiver.watch(func(a *arrival) {
		if a.ID == id && a.Destination == "plain" {
			mending.RLock()
			defer mending.RUnlock()
			hit <- struct{}{}
			b.program.signal(syscall.SIGKILL)
		}
	})
	defer b.receiver.watch(nil)
	b.load.start(ctx)
	time.Sleep(50 * time.Millisecond)
	if v := b.stage(mainTenant, id, 1); v == refused {
		return false, fmt.Errorf("stage %s: refused", id)
	}
	kills := 0
	for ; kills <= poisonBound+2; kills++ {
		select {
		case <-hit:
		case <-time.After(4 * time.Second):
			b.load.stop()
			return kills > 0, b.resolve(ctx)
		}
		mending.Lock()
		b.program.kill()
		b.load.stop()
		err := b.restart(ctx)
		mending.Unlock()
		if err != nil {
			return false, err
		}
		b.load.start(ctx)
	}
	b.load.stop()
	b.receiver.watch(nil)
	if b.program.gone() {
		if err := b.restart(ctx); err != nil {
			return true, err
		}
	}
	b.violate("bound", "%s killed the process %d times; its bound is %d charged attempts", id, kills, poisonBound)
	return true, b.resolve(ctx)
}
