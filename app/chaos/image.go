//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// image is a file system on a loop device whose image lies on XFS. A reflinked copy of the image, taken while the process stands still, is what
// a power cut leaves behind: what the file system had not yet been made to write is not in it.
type image struct {
	outer, mount string
	mounted      bool
}

func newImage(outer, mount string) (_ *image, err error) {
	i := &image{outer: outer, mount: mount}
	defer func() {
		if err != nil {
			i.close()
		}
	}()
	if err := os.MkdirAll(outer, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for images: %w", err)
	}
	if err := format(outer+".img", 3<<30); err != nil {
		return nil, err
	}
	if err := tool("mount", "-o", "loop", outer+".img", outer); err != nil {
		return nil, err
	}
	if err := format(filepath.Join(outer, "disk.img"), 1<<30); err != nil {
		return nil, err
	}
	return i, i.attach()
}

func format(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if err := file.Truncate(size); err != nil {
		_ = file.Close()
		return fmt.Errorf("make image: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	return tool("mkfs.xfs", "-q", "-m", "reflink=1", path)
}

func (i *image) attach() error {
	if err := tool("mount", "-o", "loop,noatime", filepath.Join(i.outer, "disk.img"), i.mount); err != nil {
		return err
	}
	i.mounted = true
	return nil
}

func (i *image) detach() error {
	if !i.mounted {
		return nil
	}
	i.mounted = false
	return tool("umount", i.mount)
}

// cut copies the image as the power cut finds it.
func (i *image) cut() error {
	return tool("cp", "--reflink=always", filepath.Join(i.outer, "disk.img"), filepath.Join(i.outer, "cut.img"))
}

// swap puts the copy in place of what went on after it.
func (i *image) swap() error {
	if err := i.detach(); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(i.outer, "cut.img"), filepath.Join(i.outer, "disk.img")); err != nil {
		return fmt.Errorf("put the image in place: %w", err)
	}
	return i.attach()
}

func (i *image) close() {
	if err := i.detach(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	_ = tool("umount", i.outer)
	_ = os.Remove(i.outer + ".img")
}

// tmpfs is a file system in memory, small enough to be filled.
type tmpfs struct{ mount string }

func newTmpfs(mount string, mebibytes int) (*tmpfs, error) {
	if err := tool("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=755", mebibytes), "posthorn-chaos", mount); err != nil {
		return nil, err
	}
	return &tmpfs{mount}, nil
}

// leave makes the file system as large as what it holds and so much more.
func (t *tmpfs) leave(mebibytes int) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(t.mount, &stat); err != nil {
		return fmt.Errorf("look at tmpfs: %w", err)
	}
	used := (stat.Blocks - stat.Bfree) * uint64(stat.Bsize)
	return tool("mount", "-o", fmt.Sprintf("remount,size=%d", used+uint64(mebibytes)<<20), t.mount)
}

func (t *tmpfs) close() { _ = tool("umount", t.mount) }
