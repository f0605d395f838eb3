package store

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/regular"
)

// ErrDiskLow is why nothing new is taken in: the disk is nearly full, and what it has left is for what was accepted before.
var ErrDiskLow = errors.New("the disk is nearly full")

// reserveInterval is how often the disk is looked at. One second of writing at full speed fits into a reserve.
const reserveInterval = time.Second

// reserveShare is the part of a small file system that a reserve takes at the most.
const reserveShare = 16

// ReserveConfig is what a Reserve needs.
type ReserveConfig struct {
	// Path is the file that takes the room. It must be on the file system of the database. Required.
	Path string
	// Size is how much room, in bytes, and how little may be left free before the room is given up; never more than a sixteenth of the
	// file system. 0: no room is kept, and the disk is not looked at.
	Size int64
	// Room tells what is free on a folder's file system, and what it has in all. Defaults to the system's.
	Room func(folder string) (free, all int64, err error)
	// Logger defaults to silence.
	Logger *slog.Logger
}

// Reserve keeps room on the disk for deliveries: a file of nothing. When the disk is nearly full it gives the room up and says, by Low,
// that nothing new should be taken in, so that what was accepted can still be delivered, settled and removed. When there is room again
// it takes its own back first.
type Reserve struct {
	config ReserveConfig
	low    atomic.Bool
	size   int64 // what the file should have; 0: not known yet
}

// NewReserve prepares a reserve. Run does the work.
func NewReserve(config ReserveConfig) *Reserve {
	if config.Room == nil {
		config.Room = room
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reserve{config: config}
}

// Low returns ErrDiskLow while nothing new should be taken in, else nil. It is safe for concurrent use.
func (r *Reserve) Low() error {
	if r.low.Load() {
		return ErrDiskLow
	}
	return nil
}

// Run looks at the disk until ctx ends.
func (r *Reserve) Run(ctx context.Context) {
	if r.config.Size == 0 {
		if err := os.Remove(r.config.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.config.Logger.Warn("room kept on the disk not given up", "error", err)
		}
		return
	}
	tick := time.NewTicker(reserveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.Look(); err != nil {
			r.config.Logger.Warn("room on the disk not known", "error", err)
			return
		}
	}
}

// Look looks at the disk once. Its error says that the room cannot be known here, so that looking again is of no use.
func (r *Reserve) Look() error {
	free, all, err := r.config.Room(filepath.Dir(r.config.Path))
	if err != nil {
		return fmt.Errorf("look at disk: %w", err)
	}
	r.size = min(r.config.Size, all/reserveShare)
	held := int64(0)
	if info, err := os.Stat(r.config.Path); err == nil && info.Mode().IsRegular() {
		held = info.Size()
	}
	switch full := free < r.size; {
	case full && !r.low.Load():
		r.low.Store(true)
		r.config.Logger.Warn("the disk is nearly full; nothing new is accepted, deliveries go on", "free", free, "released", held)
		fallthrough
	case full:
		if err := os.Truncate(r.config.Path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.config.Logger.Warn("room kept on the disk not given up", "error", err)
		}
	case held >= r.size:
		r.open(free)
	case free >= 3*r.size-held:
		if err := r.fill(); err == nil {
			r.open(free)
		} else if !r.low.Load() {
			r.config.Logger.Warn("no room kept on the disk", "error", err)
		}
	}
	return nil
}

// open lets new things in again.
func (r *Reserve) open(free int64) {
	if r.low.CompareAndSwap(true, false) {
		r.config.Logger.Info("the disk has room again", "free", free)
	}
}

// fill takes the room.
func (r *Reserve) fill() error {
	file, err := regular.Open(r.config.Path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep room on the disk: %w", err)
	}
	err = allocate(file, r.size)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Truncate(r.config.Path, 0)
		return fmt.Errorf("keep room on the disk: %w", err)
	}
	return nil
}

// noise fills a file with what no file system can compress.
func noise(file *os.File, size int64) error {
	buffered := bufio.NewWriterSize(file, 1<<18)
	if _, err := io.CopyN(buffered, rand.Reader, size); err != nil {
		return err
	}
	return buffered.Flush()
}
