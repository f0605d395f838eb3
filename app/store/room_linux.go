package store

import (
	"os"
	"syscall"
)

// room tells what is free on a folder's file system for a process without privileges, and what it has in all. Bytes.
func room(folder string) (free, all int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	block := int64(s.Bsize)                                      //nolint:unconvert // of 32 bits on some machines
	return int64(s.Bavail) * block, int64(s.Blocks) * block, nil //nolint:gosec // no disk is that large
}

// allocate gives a file blocks of its own, without writing them where the file system can do so.
func allocate(file *os.File, size int64) error {
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, size); err == syscall.EOPNOTSUPP { //nolint:errorlint // the system call's own
		return noise(file, size)
	} else if err != nil {
		return &os.PathError{Op: "allocate", Path: file.Name(), Err: err}
	}
	return nil
}
