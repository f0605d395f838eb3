//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

func fileFaults() []fault {
	return []fault{
		{name: "unlink", about: "the database is unlinked while it runs: exit 70", cycles: [3]int{1, 3, 30}, seconds: 10, bed: options{pace: 3 * time.Millisecond}, cycle: loseFile(false)},
		{name: "replace", about: "the database is replaced while it runs: exit 70", cycles: [3]int{1, 3, 30}, seconds: 9, bed: options{pace: 3 * time.Millisecond}, cycle: loseFile(true)},
		{name: "shm-truncated", about: "the shared-memory file is cut while it runs", cycles: [3]int{0, 4, 40}, seconds: 7, cycle: cutSharedMemory},
		{name: "wal-lost", about: "the WAL loses its end while nothing runs: exit 75", cycles: [3]int{1, 4, 40}, seconds: 8, cycle: loseTail},
		{name: "flipped-bits", about: "bits of stored payloads flip: never sent", cycles: [3]int{1, 4, 40}, seconds: 7, cycle: flipBits},
	}
}

func (b *bed) database() string {
	return cmp.Or(b.program.db, filepath.Join(b.program.dir, "posthorn.db"))
}

// loseFile takes the database away from under the program, and gives it back once the program has noticed.
func loseFile(replace bool) func(context.Context, *bed, *rand.Rand) (bool, error) {
	return func(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
		b.run(ctx, between(random, 50*time.Millisecond, 150*time.Millisecond))
		kept := b.database() + ".kept"
		if err := os.Rename(b.database(), kept); err != nil {
			return false, fmt.Errorf("take database away: %w", err)
		}
		if replace {
			if err := copyFile(kept, b.database()); err != nil {
				return false, err
			}
		}
		at := time.Now()
		if !b.program.wait(10 * time.Second) {
			b.violate("storage", "the program went on for %s without its database", time.Since(at))
			b.program.kill()
		} else if code := b.program.exitCode(); code != exitStorage {
			b.violate("storage", "the program ended with %d, not %d, without its database: %s", code, exitStorage, b.program.log.last(2))
		}
		b.load.stop()
		if err := os.Rename(kept, b.database()); err != nil {
			return false, fmt.Errorf("give database back: %w", err)
		}
		return true, b.restart(ctx)
	}
}

func cutSharedMemory(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.run(ctx, between(random, 50*time.Millisecond, 150*time.Millisecond))
	if err := os.Truncate(b.database()+"-shm", 0); err != nil {
		return false, fmt.Errorf("cut shared memory: %w", err)
	}
	ended := b.program.wait(2 * time.Second)
	b.load.stop()
	if !ended {
		b.program.kill()
	}
	return true, b.restart(ctx)
}

// loseTail cuts the WAL, expects to be told at the next start, and puts back what it cut.
func loseTail(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.run(ctx, between(random, 50*time.Millisecond, 200*time.Millisecond))
	b.program.kill()
	b.load.stop()
	wal := b.database() + "-wal"
	info, err := os.Stat(wal)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < 100_000 {
		return false, b.restart(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("look at WAL: %w", err)
	}
	// The whole file is kept: what a start does with the rest must not count.
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(b.database()+suffix, filepath.Join(b.journals, "kept"+suffix)); err != nil {
			return false, err
		}
	}
	if err := os.Truncate(wal, info.Size()/2); err != nil {
		return false, fmt.Errorf("cut WAL: %w", err)
	}
	b.receiver.quiet(time.Second)
	b.receiver.nextBoot()
	_, err = b.program.start(ctx)
	switch {
	case err == nil:
		b.violate("loss", "the program started on a WAL that had lost its second half, without a word")
		b.program.kill()
	case b.program.exitCode() != exitIntegrity:
		b.violate("loss", "the program ended with %d, not %d, on a WAL that had lost its second half: %s", b.program.exitCode(), exitIntegrity, b.program.log.last(2))
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := b.putBack(filepath.Join(b.journals, "kept"+suffix), b.database()+suffix); err != nil {
			return true, err
		}
	}
	if err := os.Remove(b.database() + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, fmt.Errorf("remove shared memory: %w", err)
	}
	return true, b.restart(ctx)
}

// putBack copies a file to where the program finds it, as its own.
func (b *bed) putBack(from, to string) error {
	if err := copyFile(from, to); err != nil {
		return err
	}
	if u := b.machine.user; u != nil {
		if err := os.Chown(to, int(u.Uid), int(u.Gid)); err != nil {
			return fmt.Errorf("give file to the program's user: %w", err)
		}
	}
	return os.Chmod(to, 0o600)
}

// flipBits changes stored payloads that still wait for a destination.
func flipBits(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	pause := func(verb string) error {
		if status, text := b.call(mainTenant, http.MethodPost, "/v1/destinations/plain/"+verb, ""); status != http.StatusOK {
			return fmt.Errorf("%s destination: %d %s", verb, status, text)
		}
		return nil
	}
	if err := pause("pause"); err != nil {
		return false, err
	}
	before := b.commands()
	b.run(ctx, 300*time.Millisecond)
	b.load.stop()
	b.program.signal(syscall.SIGTERM)
	b.program.wait(10 * time.Second)
	text, err := os.ReadFile(b.database())
	if err != nil {
		return false, fmt.Errorf("read database: %w", err)
	}
	file, err := os.OpenFile(b.database(), os.O_WRONLY, 0)
	if err != nil {
		return false, fmt.Errorf("open database: %w", err)
	}
	defer file.Close()
	flipped := 0
	b.ledger.mu.Lock()
	for _, c := range b.ledger.commands[before:] {
		for _, m := range c.messages {
			// A dead letter would hold its ordering key for good.
			if c.verdict != acknowledged || m.orderKey != "" || m.kind != keyedType || m.tenant != mainTenant || flipped == 5 {
				continue
			}
			head := fmt.Appendf(nil, `{"tenant": %q, "id":%q,"big":`, m.tenant, m.id)
			if at := bytes.Index(text, head); at >= 0 && bytes.LastIndex(text, head) == at {
				place := at + len(head) + random.IntN(20)
				if _, err = file.WriteAt([]byte{text[place] ^ 1<<random.IntN(3)}, int64(place)); err == nil {
					m.flipped = b.program.boot
					flipped++
				}
			}
		}
	}
	b.ledger.mu.Unlock()
	if err := errors.Join(err, file.Sync()); err != nil {
		return false, fmt.Errorf("flip bits: %w", err)
	}
	if err := b.restart(ctx); err != nil {
		return false, err
	}
	return flipped > 0, pause("resume")
}
