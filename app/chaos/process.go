//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

func processFaults() []fault {
	return []fault{
		{name: "stop-past-lease", about: "SIGSTOP past the lease, then SIGCONT: one terminal state", cycles: [3]int{2, 4, 60}, seconds: 18, bed: options{pace: 5 * time.Millisecond}, cycle: stopPastLease},
		{name: "sigterm-storm", about: "SIGTERM, often and at bad moments", cycles: [3]int{3, 30, 300}, seconds: 20, cycle: termStorm},
		{name: "twins", about: "a second process on the same folder: exit 73", cycles: [3]int{1, 1, 10}, seconds: 10, bed: options{pace: 20 * time.Millisecond}, cycle: twins},
		{name: "foreign-writer", about: "another program writes to the file in short transactions: nobody is refused", cycles: [3]int{2, 4, 60}, seconds: 20, cycle: foreignWriter},
	}
}

func stopPastLease(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.receiver.hold("plain")
	before, _ := b.receiver.counted()
	b.run(ctx, between(random, 30*time.Millisecond, 100*time.Millisecond))
	b.loose[b.program.boot] = true
	b.program.freeze()
	after, _ := b.receiver.counted()
	b.receiver.release("plain") // it answers while nobody listens
	time.Sleep(leaseTime + 300*time.Millisecond)
	b.program.signal(syscall.SIGCONT)
	time.Sleep(300 * time.Millisecond)
	b.load.stop()
	return after > before, b.resolve(ctx)
}

func termStorm(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.run(ctx, between(random, 5*time.Millisecond, 120*time.Millisecond))
	storm := func() {
		for range 1 + random.IntN(4) {
			b.program.signal(syscall.SIGTERM)
			time.Sleep(between(random, 0, 20*time.Millisecond))
		}
		if !b.program.wait(15 * time.Second) {
			b.violate("stop", "the program did not end within 15 seconds of SIGTERM")
			b.program.kill()
		}
		if code := b.program.exitCode(); code != 0 && code != 128+int(syscall.SIGTERM) && code != -int(syscall.SIGTERM) {
			b.violate("stop", "the program ended with %d after SIGTERM: %s", code, b.program.log.last(3))
		}
	}
	storm()
	b.load.stop()
	if random.IntN(2) == 0 { // again, while it starts
		b.receiver.quiet(time.Second)
		b.receiver.nextBoot()
		if err := b.program.launch(); err != nil {
			return false, err
		}
		time.Sleep(between(random, 0, 120*time.Millisecond))
		storm()
	}
	return true, b.restart(ctx)
}

// twins starts a second process while the first works.
func twins(ctx context.Context, b *bed, _ *rand.Rand) (bool, error) {
	b.load.start(ctx)
	defer b.load.stop()
	cmd := b.program.command("serve", "--listen", "127.0.0.1:0")
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("start second process: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit code is looked at
		close(ended)
	}()
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != exitHeld {
			b.violate("lock", "a second process ended with %d, not %d: %s", code, exitHeld, said.last(2))
		}
	case <-time.After(15 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
		b.violate("lock", "a second process ran on the same folder")
	}
	return true, nil
}

// foreignWriter has another process write to the file, as an application beside Posthorn does.
func foreignWriter(ctx context.Context, b *bed, _ *rand.Rand) (bool, error) {
	db, err := sql.Open("sqlite", "file:"+b.database()+"?mode=rw&_txlock=immediate&_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return false, fmt.Errorf("open database beside the program: %w", err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS chaos_foreign (n INTEGER PRIMARY KEY)`); err != nil {
		return false, fmt.Errorf("write beside the program: %w", err)
	}
	refusals := b.refusals.Load()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var wrote int
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := db.ExecContext(ctx, `INSERT INTO chaos_foreign DEFAULT VALUES`); err == nil {
				wrote++
			}
			time.Sleep(time.Millisecond)
		}
	})
	b.run(ctx, 700*time.Millisecond)
	b.load.stop()
	close(stop)
	writing.Wait()
	if err := db.Close(); err != nil {
		return false, fmt.Errorf("close database beside the program: %w", err)
	}
	if n := b.refusals.Load() - refusals; n > 0 {
		b.violate("availability", "%d commands were refused while another program wrote for microseconds at a time", n)
	}
	return wrote > 0, b.resolve(ctx)
}
