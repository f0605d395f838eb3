package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/posthorn/posthorn/app/regular"
)

// errNotAFile is returned for a device, a pipe or a folder at the place of the file.
var errNotAFile = errors.New("there is something that is not a regular file")

// appender writes whole lines to the end of one file. It is not safe for concurrent use.
type appender struct {
	place place
	file  *os.File // nil when it has to be opened
}

// append adds lines and returns once they are on the disk. After an error the file is opened anew, since what a failed sync left
// behind is not known: the lines of this call count as not written, and are written again by later attempts.
func (a *appender) append(lines []byte) (err error) {
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if err := a.open(); err != nil {
		return err
	}
	torn, err := a.torn()
	if err != nil {
		return err
	}
	if torn {
		lines = append([]byte{'\n'}, lines...)
	}
	if _, err := a.file.Write(lines); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("sync file: %w", err)
	}
	return nil
}

// open opens the file unless it is open and still the one at its path: after a rotation lines go to the new one.
func (a *appender) open() error {
	if a.file != nil {
		if a.current() {
			return nil
		}
		a.close()
	}
	root, err := os.OpenRoot(a.place.folder)
	if err != nil {
		return fmt.Errorf("open allowed folder: %w", err)
	}
	defer root.Close()
	folder := filepath.Dir(a.place.name)
	if folder != "." {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	// Non-blocking, so that a pipe without a reader is an error and not a wait.
	file, err := root.OpenFile(a.place.name, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotAFile
	}
	if err == nil {
		err = regular.Alone(file)
	}
	if err == nil {
		// The file's name has to be on the disk as much as its lines.
		err = syncFolders(root, folder)
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("open file: %w", err)
	}
	a.file = file
	return nil
}

func syncFolders(root *os.Root, folder string) error {
	for {
		opened, err := root.Open(folder)
		if err != nil {
			return err
		}
		err = opened.Sync()
		opened.Close()
		if err != nil {
			return fmt.Errorf("sync folder: %w", err)
		}
		if folder == "." {
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

func (a *appender) current() bool {
	opened, err := a.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(a.place.folder, a.place.name))
	return err == nil && os.SameFile(opened, there) && regular.Alone(a.file) == nil
}

// torn reports whether the file ends within a line: cut by a crash, a full disk, or somebody else.
func (a *appender) torn() (bool, error) {
	size, err := a.file.Seek(0, io.SeekEnd)
	if err != nil {
		return false, fmt.Errorf("find end of file: %w", err)
	}
	if size == 0 {
		return false, nil
	}
	last := make([]byte, 1)
	if _, err := a.file.ReadAt(last, size-1); err != nil {
		return false, fmt.Errorf("read end of file: %w", err)
	}
	return last[0] != '\n', nil
}

func (a *appender) close() {
	if a.file != nil {
		a.file.Close()
		a.file = nil
	}
}
