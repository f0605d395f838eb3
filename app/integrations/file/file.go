package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/posthorn/posthorn/outbox"
)

// Config is a registration of one file.
type Config struct {
	// Path is the file: absolute, or relative to the first allowed folder and Below.
	Path string
	// Allow are the folders, absolute, inside which files may be.
	Allow []string
	// Below, if set, is the only folder in each of them that may hold this file. So files of one tenant are not written to by another.
	Below string
}

// File appends deliveries to one file. It is safe for concurrent use. Close it when its registration ends.
type File struct {
	// writing is held by the batch that is being written; the others gather meanwhile.
	writing  sync.Mutex
	appender appender

	mu      sync.Mutex
	next    *batch // what gathers; nil when nothing does
	closed  bool
	batches sync.WaitGroup
}

// batch is the lines that share one sync.
type batch struct {
	lines [][]byte // nil where its delivery gave up before the batch was written
	done  chan struct{}
	err   error // read after done
}

var errClosed = errors.New("the destination is closed")

// New returns a file destination for a path that an allowed folder holds. It opens nothing yet.
func New(config Config) (*File, error) {
	where, err := locate(config)
	if err != nil {
		return nil, fmt.Errorf("register file: %w", err)
	}
	return &File{appender: appender{place: where}}, nil
}

// Deliver appends one delivery: nil once its line is on the disk, else a *outbox.Failure, or an error without a class when ctx was
// cancelled. It is an outbox.Outside handler; its readers suppress repeats by id.
func (f *File) Deliver(ctx context.Context, d outbox.Delivery) error {
	text, err := line(d)
	if err != nil {
		return &outbox.Failure{Class: outbox.Rejected, Err: err}
	}
	joined, place, err := f.join(text)
	if err != nil {
		return &outbox.Failure{Class: outbox.Unreachable, Err: err}
	}
	select {
	case <-joined.done:
		return failureOf(joined.err)
	case <-ctx.Done():
	}
	f.leave(joined, place)
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("deliver to file: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	// A disk that hangs is an outage, unlike a web server that does not answer: no message can be what makes it slow.
	return &outbox.Failure{Class: outbox.Unreachable, Err: fmt.Errorf("the disk did not sync in time: %w", ctx.Err())}
}

// failureOf gives an error its class. The disk is the destination: full, read-only, failing or unplugged it is unreachable, and no
// message's fault. What stands in the file's place, or leads out of the allowed folder, does not mend itself: that is a failure.
func failureOf(err error) error {
	if err == nil {
		return nil
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		// os.Root's refusals carry no number of the system's.
		return &outbox.Failure{Class: outbox.Failed, Err: err}
	}
	switch errno {
	case syscall.EEXIST, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO:
		return &outbox.Failure{Class: outbox.Failed, Err: err}
	default:
		return &outbox.Failure{Class: outbox.Unreachable, Err: err}
	}
}

// join adds a line to the batch that gathers, and starts one when none does.
func (f *File) join(text []byte) (joined *batch, place int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, 0, errClosed
	}
	if f.next == nil {
		f.next = &batch{done: make(chan struct{})}
		f.batches.Go(f.write)
	}
	f.next.lines = append(f.next.lines, text)
	return f.next, len(f.next.lines) - 1, nil
}

// leave takes a line back while its batch still gathers, so that a disk that hangs for long does not get it once for each attempt.
func (f *File) leave(joined *batch, place int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == joined {
		joined.lines[place] = nil
	}
}

// write waits for the batch before, ends the gathering and writes what came together.
func (f *File) write() {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	b := f.next
	f.next = nil
	f.mu.Unlock()
	if lines := bytes.Join(b.lines, nil); len(lines) > 0 {
		b.err = f.appender.append(lines)
	}
	close(b.done)
}

// Close waits for what is being written and closes the file.
func (f *File) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.batches.Wait()
	f.writing.Lock()
	defer f.writing.Unlock()
	f.appender.close()
}
