package app

import (
	"os"
	"time"
)

// walWatch tells by a stat, a tenth of the cost of asking SQLite, whether the WAL was written to. The file itself is not opened.
type walWatch struct {
	path  string
	size  int64
	wrote time.Time
	quiet bool // what is known of the file was so for longer than the clock of file times is coarse
}

// coarse is more than file systems round the time of a write by.
const coarse = 100 * time.Millisecond

func newWALWatch(path string) *walWatch { return &walWatch{path: path} }

// changed reports whether there may have been a write since it was asked before. One that falls into the same instant of the file's clock as
// what was seen last leaves no trace, so that a young file counts as changed.
func (w *walWatch) changed() bool {
	info, err := os.Stat(w.path)
	if err != nil {
		w.quiet = false
		return true
	}
	same := w.quiet && info.Size() == w.size && info.ModTime().Equal(w.wrote)
	w.size, w.wrote = info.Size(), info.ModTime()
	age := time.Since(w.wrote)
	w.quiet = age > coarse // and not in the future, as after a jump of the clock
	return !same
}
