//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

func upkeepFaults() []fault {
	return []fault{
		{name: "replay-killed", about: "SIGKILL during a bulk replay: each dead letter is replayed once, each replay audited", needs: []need{needTrace},
			cycles: [3]int{8, 4, 40}, seconds: 14, cycle: killReplay, after: auditReplays},
		{name: "retention-killed", about: "SIGKILL while retention removes what was dispatched: dead letters stay", cycles: [3]int{3, 5, 100}, seconds: 18,
			bed: options{settings: `  retention-dispatched: {value: 0s, observation: "a proof cannot wait for days"}
  retention-dispatched-count: {value: 0, observation: "a proof cannot wait for a million"}
`}, cycle: killRetention},
	}
}

// letterBatch is how many dead letters one cycle makes: more than one command replays.
const letterBatch = 700

// killReplay makes dead letters, begins to replay them, kills, and replays the rest.
func killReplay(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.receiver.change("doom", 1, answer422)
	for n := 0; n < letterBatch; n += 100 {
		if v := b.stage(mainTenant, fmt.Sprintf("letter-%d-%d", random.Uint32(), n), 100); v != acknowledged {
			return false, fmt.Errorf("stage dead letters: %s", v)
		}
	}
	if err := b.drain(ctx); err != nil {
		return false, err
	}
	b.receiver.change("doom", 0)
	i, err := b.inject("fsync,fdatasync", "delay_enter=40ms")
	if err != nil {
		return false, err
	}
	var replaying sync.WaitGroup
	replaying.Go(func() { _, _, _ = b.replayAll("") })
	time.Sleep(between(random, 10*time.Millisecond, 170*time.Millisecond))
	b.program.kill()
	replaying.Wait()
	i.stop()
	if err := b.restart(ctx); err != nil {
		return true, err
	}
	// After an answer that was lost, the same request does the rest.
	cursor := ""
	for range 100 {
		_, next, err := b.replayAll(cursor)
		if err != nil {
			return true, err
		}
		if cursor = next; next == "" {
			break
		}
	}
	return true, b.drain(ctx)
}

// replayAll asks for the replay of every dead letter, from where an earlier answer ended.
func (b *bed) replayAll(cursor string) (replayed int, next string, err error) {
	status, text := b.call(mainTenant, http.MethodPost, "/v1/replays", fmt.Sprintf(`{"filter":{"handler":"doom"},"reason":"the target was mended","cursor":%q}`, cursor))
	var said struct {
		Replayed int     `json:"replayed"`
		Next     *string `json:"next"`
	}
	if err := json.Unmarshal(text, &said); status != http.StatusOK || err != nil {
		return 0, "", fmt.Errorf("replay dead letters: %d %.300s", status, text)
	}
	if said.Next != nil {
		next = *said.Next
	}
	return said.Replayed, next, nil
}

// auditReplays asks the checks at the end to count the audit rows.
func auditReplays(_ context.Context, b *bed) error {
	b.audited = true
	return nil
}

// checkAudit: what was a dead letter and was delivered has exactly one audit row, since each was replayed once.
func (b *bed) checkAudit(r *rows) {
	if !b.audited {
		return
	}
	for _, d := range r.deliveries {
		if d.handler == "doom" && (d.state != "dispatched" || d.replays != 1) {
			b.violate("audit", "%s for doom is %s with %d audit rows, after one replay", d.message, d.state, d.replays)
		}
	}
}

// killRetention lets retention work, which it does when the program starts, and kills it there.
func killRetention(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.purging = true
	b.run(ctx, 150*time.Millisecond)
	b.load.stop()
	if err := b.drain(ctx); err != nil {
		return false, err
	}
	if err := b.lookAtLetters(); err != nil {
		return false, err
	}
	for range 2 {
		b.program.kill()
		if err := b.restart(ctx); err != nil {
			return false, err
		}
		time.Sleep(between(random, 0, 40*time.Millisecond))
	}
	b.program.kill()
	if err := b.restart(ctx); err != nil {
		return false, err
	}
	time.Sleep(100 * time.Millisecond)
	return true, nil
}
