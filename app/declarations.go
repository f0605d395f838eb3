package app

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// recordsPoll is how often the data folder's records are looked at for a change.
const recordsPoll = 2 * time.Second

// declarations are the records in effect, and in the database what they declare.
type declarations struct {
	folder    string
	overrides map[string]records.Override
	version   string
	readers   *outbox.Readers // what handlers of our own read; nil: there are none
	writer    *outbox.Writer
	logger    *slog.Logger

	current atomic.Pointer[records.Set]
	loading sync.Mutex
}

// loadRecords reads the records of a data folder, which need not exist, over the built-in ones, with the operator's values.
func loadRecords(folder string, overrides map[string]records.Override) (*records.Set, error) {
	set, err := records.Load(os.DirFS(folder))
	if err != nil {
		return nil, fmt.Errorf("read records:\n%w", err)
	}
	if err := set.Override(overrides); err != nil {
		return nil, fmt.Errorf("read settings:\n%w", err)
	}
	if err := set.Check(); err != nil {
		return nil, fmt.Errorf("check records:\n%w", err)
	}
	if err := mediator.Check(set, useCases()); err != nil {
		return nil, fmt.Errorf("check use cases:\n%w", err)
	}
	return set, nil
}

// Records returns the records in effect.
func (d *declarations) Records() *records.Set { return d.current.Load() }

// check judges a message that another program staged by SQL: its payload must keep to the schema that its record declares.
func (d *declarations) check(m outbox.Message) error {
	if m.Kind != outbox.IntegrationEvent {
		return nil
	}
	event, declared := d.Records().IntegrationEvent(m.Type)
	if !declared {
		return nil // it was when it was staged
	}
	if _, declared := event.Version(m.SchemaVersion); !declared {
		return nil
	}
	return event.Validate(m.SchemaVersion, m.Payload)
}

// Reload reads the records again. From its return on, what they declare may be staged. When a file is wrong, everything stays as it is.
// Settings that the running process was built with take effect at the next start.
func (d *declarations) Reload(ctx context.Context) error {
	d.loading.Lock()
	defer d.loading.Unlock()
	set, err := loadRecords(d.folder, d.overrides)
	if err != nil {
		return err
	}
	return d.declare(ctx, set)
}

// declare brings a set into effect: in the database first, so that nothing is let in that the database refuses.
func (d *declarations) declare(ctx context.Context, set *records.Set) error {
	types := declared(set)
	err := d.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		if err := outbox.DeclareTypes(ctx, tx, types); err != nil {
			return err
		}
		return outbox.DeclareReads(ctx, tx, "posthorn "+d.version, d.readers.Declare(types))
	})
	if err != nil {
		return fmt.Errorf("declare integration events: %w", err)
	}
	d.current.Store(set)
	return nil
}

// watch reloads when a file of the folder changes, or when somebody asks by again.
func (d *declarations) watch(ctx context.Context, again <-chan os.Signal) {
	tick := time.NewTicker(recordsPoll)
	defer tick.Stop()
	seen := fingerprint(d.folder)
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-again:
			asked = true
		case <-tick.C:
		}
		now := fingerprint(d.folder)
		if now == seen && !asked {
			continue
		}
		seen = now
		if err := d.Reload(ctx); err != nil {
			if ctx.Err() == nil {
				d.logger.Error("records are wrong; those read before stay in effect", "error", err)
			}
			continue
		}
		d.logger.Info("records read again", "folder", d.folder)
	}
}

// fingerprint tells states of a folder of records apart, by names, sizes and times.
func fingerprint(folder string) uint64 {
	sum := fnv.New64a()
	_ = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			fmt.Fprintln(sum, path, err)
		case !entry.IsDir():
			if info, err := entry.Info(); err == nil {
				fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
			}
		}
		return nil
	})
	return sum.Sum64()
}
