package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/posthorn/posthorn/app/store"
)

// disk is a file system of a size, on which others take room beside the reserve's file.
type disk struct {
	all, others int64
	reserve     string
	err         error
}

func (d *disk) room(string) (free, all int64, err error) {
	if info, err := os.Stat(d.reserve); err == nil {
		return max(0, d.all-d.others-info.Size()), d.all, d.err
	}
	return max(0, d.all-d.others), d.all, d.err
}

func TestReserve(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	d := &disk{all: 64 * mib, reserve: filepath.Join(t.TempDir(), "posthorn.reserve")}
	r := store.NewReserve(store.ReserveConfig{Path: d.reserve, Size: 16 * mib, Room: d.room})
	look := func(others, held int64, low bool) {
		t.Helper()
		d.others = others
		if err := r.Look(); err != nil {
			t.Fatal(err)
		}
		var size int64
		if info, err := os.Stat(d.reserve); err == nil {
			size = info.Size()
		}
		if err := r.Low(); size != held || low != errors.Is(err, store.ErrDiskLow) || low != (err != nil) {
			t.Errorf("with %d MiB taken by others: %d bytes are kept, %v; want %d, low %t", others/mib, size, err, held, low)
		}
	}
	const share = 4 * mib // a sixteenth of the disk, which is less than was asked for
	look(60*mib, 0, false)
	look(50*mib, share, false)
	look(56*mib, share, false) // 4 MiB are free beside it
	look(56*mib+1, 0, true)
	look(64*mib, 0, true)
	look(52*mib+1, 0, true) // no threefold room yet
	look(52*mib, share, false)
	look(64*mib, 0, true)
	look(0, share, false)

	d.err = errors.ErrUnsupported
	if err := r.Look(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unknown room: %v", err)
	}
}

func TestReserveOfNothing(t *testing.T) {
	t.Parallel()
	d := &disk{all: 64 << 20, reserve: filepath.Join(t.TempDir(), "posthorn.reserve")}
	if err := os.WriteFile(d.reserve, []byte("room"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := store.NewReserve(store.ReserveConfig{Path: d.reserve, Room: d.room})
	r.Run(t.Context())
	if _, err := os.Stat(d.reserve); !errors.Is(err, os.ErrNotExist) || r.Low() != nil {
		t.Errorf("a reserve that was switched off is still there: %v, %v", err, r.Low())
	}
}

// TestReserveOnARealDisk takes real blocks.
func TestReserveOnARealDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "posthorn.reserve")
	r := store.NewReserve(store.ReserveConfig{Path: path, Size: 1 << 20})
	if err := r.Look(); errors.Is(err, errors.ErrUnsupported) {
		t.Log("the room of a disk is not known on this system")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 1<<20 || r.Low() != nil {
		t.Errorf("kept: %v, %v, %v", info, err, r.Low())
	}
}
