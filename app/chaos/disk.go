//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

// The exit codes that the program documents.
const (
	exitStorage   = 70
	exitHeld      = 73
	exitIntegrity = 75
)

func diskFaults() []fault {
	trace := []need{needTrace}
	return []fault{
		{name: "fsync-eio", about: "fsync fails with EIO: exit 70 within a second, nothing acknowledged after", needs: trace, cycles: [3]int{2, 8, 100}, seconds: 8, cycle: failSync("EIO")},
		{name: "fsync-enospc", about: "fsync fails with ENOSPC: the same", needs: trace, cycles: [3]int{1, 5, 50}, seconds: 6, cycle: failSync("ENOSPC")},
		{name: "write-eio", about: "a write to the WAL fails with EIO", needs: trace, cycles: [3]int{1, 6, 60}, seconds: 9, bed: options{pace: 3 * time.Millisecond}, cycle: failWrite("EIO")},
		{name: "write-enospc", about: "writes to the WAL fail with ENOSPC for a while: refused, then healed", needs: trace, cycles: [3]int{3, 4, 60}, seconds: 14, bed: options{pace: 3 * time.Millisecond}, cycle: failWrite("ENOSPC")},
		{name: "disk-full", about: "a full disk: refused, then healed without a restart", needs: []need{needMount}, cycles: [3]int{0, 3, 20}, seconds: 8, bed: options{tmpfs: 64}, cycle: fillDisk},
	}
}

// failSync has every fsync fail from now on.
func failSync(errno string) func(context.Context, *bed, *rand.Rand) (bool, error) {
	return func(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
		b.load.start(ctx)
		time.Sleep(between(random, 20*time.Millisecond, 100*time.Millisecond))
		i, err := b.inject("fsync,fdatasync", "error="+errno)
		if err != nil {
			return false, err
		}
		ended := b.program.wait(6 * time.Second)
		at := time.Now()
		i.stop()
		count, first := i.fired()
		b.load.stop()
		switch {
		case count == 0:
		case !ended:
			b.violate("storage", "the program went on for %s after fsync failed with %s", time.Since(first), errno)
		case b.program.exitCode() != exitStorage:
			b.violate("storage", "the program ended with %d, not %d, after fsync failed with %s: %s", b.program.exitCode(), exitStorage, errno, b.program.log.last(2))
		case at.Sub(first) > 2*time.Second: // a second of the program's, and what tracing costs
			b.violate("storage", "the program ended only %s after fsync failed with %s", at.Sub(first), errno)
		}
		if count > 0 {
			b.acknowledgedAfter(first.Add(20*time.Millisecond), "fsync failed with "+errno)
		}
		b.program.kill()
		return count > 0, b.restart(ctx)
	}
}

// acknowledgedAfter finds commands of this boot that were sent after a moment and acknowledged all the same.
func (b *bed) acknowledgedAfter(moment time.Time, what string) {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, c := range b.ledger.commands {
		if c.boot == b.program.boot && c.answered && c.verdict == acknowledged && c.sent.After(moment) {
			b.violate("storage", "command %s was sent %s after %s, and acknowledged", c.key, c.sent.Sub(moment), what)
		}
	}
}

// failWrite has a few writes to the WAL fail.
func failWrite(errno string) func(context.Context, *bed, *rand.Rand) (bool, error) {
	return func(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
		b.load.start(ctx)
		time.Sleep(between(random, 20*time.Millisecond, 100*time.Millisecond))
		i, err := b.inject("pwrite64,write", "error="+errno, filepath.Join(b.program.dir, "posthorn.db-wal"))
		if err != nil {
			return false, err
		}
		ended := b.program.wait(time.Second)
		i.release(b.program)
		count, _ := i.fired()
		if !ended {
			ended = b.program.wait(50 * time.Millisecond)
		}
		switch {
		case ended && (errno == "ENOSPC" || b.program.exitCode() != exitStorage):
			b.violate("storage", "the program ended with %d after a write failed with %s: %s", b.program.exitCode(), errno, b.program.log.last(2))
		case !ended:
			if err := b.heals(ctx, "writes failed with "+errno); err != nil {
				return true, err
			}
		}
		b.load.stop()
		if !ended {
			return count > 0, b.resolve(ctx)
		}
		return count > 0, b.restart(ctx)
	}
}

// heals waits until commands are acknowledged again.
func (b *bed) heals(ctx context.Context, what string) error {
	b.load.stop()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		before := b.ledger.count(acknowledged)
		b.load.start(ctx)
		time.Sleep(50 * time.Millisecond)
		b.load.stop()
		if b.ledger.count(acknowledged) > before {
			return nil
		}
	}
	if b.program.gone() {
		return fmt.Errorf("the program ended with %d after %s: %s", b.program.exitCode(), what, b.program.log.last(3))
	}
	b.violate("storage", "nothing was acknowledged within 15 s of the time when %s", what)
	return nil
}

// fillDisk goes on until the disk is full, makes room, and goes on.
func fillDisk(ctx context.Context, b *bed, _ *rand.Rand) (bool, error) {
	if err := b.tmpfs.leave(4); err != nil {
		return false, err
	}
	refusals := b.refusals.Load()
	b.load.fat.Store(20_000)
	defer b.load.fat.Store(0)
	b.load.start(ctx)
	full := false
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil && !full && !b.program.gone(); time.Sleep(10 * time.Millisecond) {
		full = b.refusals.Load() > refusals+20
	}
	b.load.stop()
	if b.program.gone() {
		b.violate("storage", "the program ended with %d when the disk was full: %s", b.program.exitCode(), b.program.log.last(3))
	}
	b.load.fat.Store(0)
	if err := b.tmpfs.leave(200); err != nil {
		return false, err
	}
	if b.program.gone() {
		return full, b.restart(ctx)
	}
	return full, b.heals(ctx, "the disk was full")
}
