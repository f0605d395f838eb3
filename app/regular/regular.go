// Package regular opens files that are files. A name in a data folder that leads to a pipe, a device, a socket or a folder is refused with a
// sentence, and never waited for: a pipe would hold up whoever opens it until somebody writes, and a device may have no end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var (
	// ErrNotRegular: there is something at the path that is no regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLong: the file is longer than what is read.
	ErrTooLong = errors.New("the file is too long")
)

// kinds are what people call what is no regular file.
var kinds = []struct {
	mode fs.FileMode
	name string
}{
	{fs.ModeDir, "a folder"}, {fs.ModeNamedPipe, "a named pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"}, {fs.ModeSymlink, "a symbolic link"},
}

// Judge refuses what is no regular file.
func Judge(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "something else"
	for _, kind := range kinds {
		if info.Mode()&kind.mode != 0 {
			what = kind.name
			break
		}
	}
	return fmt.Errorf("%s is %s, %w", path, what, ErrNotRegular)
}

// Check refuses a path at which there is something that is no regular file. That nothing is there is no error.
func Check(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return Judge(path, info)
}

// Open opens a file as os.OpenFile does, without waiting for anybody.
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := Check(path); err != nil { // opening a socket, or a pipe for writing, fails with words that say nothing
		return nil, err
	}
	file, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = Judge(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Read reads a file that has at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	file, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrTooLong, path, most)
	}
	return text, err
}

// ErrLinked: the file has more than one name, so that what is written to it under one stands under the others too.
var ErrLinked = errors.New("the file has another name too, a hard link")

// Alone refuses a file that has more than one name.
func Alone(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if held, ok := info.Sys().(*syscall.Stat_t); ok && held.Nlink > 1 {
		return ErrLinked
	}
	return nil
}
