package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/posthorn/posthorn/app/regular"
)

// file is a database file on the disk, known by its inode.
type file struct {
	path   string // absolute, without symbolic links
	info   fs.FileInfo
	fresh  bool // empty, so that settings of the file itself can still be chosen
	marked bool // there is a mark, so that a WAL which it disagrees with must stay as it is
	guest  bool // it belongs to another program, so that settings of the file itself are left alone

	attached *file // the control database, if it is another file
}

// resolve makes one name of all names of a file, so that its lock and its inode are looked for in one place. The file need not exist.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	folder, err := resolve(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

// findFile finds the database file, or creates it empty, for its owner alone. It is the last to open it outside SQLite.
func findFile(path string, create bool) (*file, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("find database: %w", err)
	}
	if create {
		if err := createFile(path); err != nil {
			return nil, fmt.Errorf("create database: %w", err)
		}
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMissing, path)
	}
	if err != nil {
		return nil, fmt.Errorf("find database: %w", err)
	}
	if err := regular.Judge(path, info); err != nil {
		return nil, fmt.Errorf("find database: %w", err)
	}
	return &file{path: path, info: info, fresh: create && info.Size() == 0}, nil
}

func createFile(path string) error {
	folder := filepath.Dir(path)
	created, err := createFolder(folder)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Nothing is in the file yet and SQLite has not seen it: closing this descriptor drops no lock.
	if err := f.Close(); err != nil {
		return err
	}
	// A file is as durable as the entries that lead to it; SQLite syncs its own folder at most.
	for _, f := range append(created, folder) {
		if err := syncFolder(f); err != nil {
			return err
		}
	}
	return nil
}

// createFolder makes a folder and those above it, for the owner alone, and returns those whose entries changed.
func createFolder(folder string) (changed []string, err error) {
	if _, err := os.Stat(folder); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	above := filepath.Dir(folder)
	if changed, err = createFolder(above); err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return append(changed, above), nil
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// verify compares what the path leads to now with the file that was opened.
func (f *file) verify() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is gone", ErrReplaced, f.path)
	}
	if err != nil {
		return fmt.Errorf("look at database: %w", err)
	}
	if !os.SameFile(f.info, info) {
		return fmt.Errorf("%w: %s is another file now", ErrReplaced, f.path)
	}
	if f.attached != nil {
		return f.attached.verify()
	}
	return nil
}
