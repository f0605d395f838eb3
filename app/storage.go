package app

import (
	"context"
	"path/filepath"

	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// openStore takes the lock, opens the database and brings the declarations into it.
func (a *Appliance) openStore(ctx context.Context, set *records.Set) (err error) {
	own := filepath.Join(a.options.DataDir, DatabaseName)
	steps, err := outbox.Steps()
	if err != nil {
		return err
	}
	opt := store.Options{Path: own, Schema: a.options.Build.Schema, SchemaVersion: outbox.SchemaVersion, Steps: steps, Create: true, AcceptLostTail: a.options.AcceptLostTail, Writer: writerConfig(set),
		Logger: a.logger}
	if a.options.DB != "" {
		if opt, err = a.guestOptions(opt); err != nil {
			return err
		}
		if err := a.takeLock(ctx, opt.Path); err != nil {
			return err
		}
		if err := a.wholeOutbox(ctx); err != nil {
			return err
		}
	}
	if err := a.takeLock(ctx, own); err != nil {
		return err
	}
	if a.store, err = store.Open(ctx, opt); err != nil {
		return err
	}
	if err := a.arrive(ctx); err != nil {
		return err
	}
	a.declarations = &declarations{folder: records.OverlayDir(a.options.DataDir), overrides: a.options.Config.Settings, version: a.options.Build.Version,
		readers: a.readers(), writer: a.store.Writer, logger: a.logger}
	return a.declarations.declare(ctx, set)
}

func (a *Appliance) takeLock(ctx context.Context, path string) error {
	lock, err := store.TakeLock(ctx, path, a.options.LockWait)
	if err == nil {
		a.locks = append(a.locks, lock)
	}
	return err
}
