package outbox

import "context"

// hitch has fn run as the last command of the next group that is to be committed: it sees what the group wrote, and costs no commit of its
// own. It makes no group by itself, and shares the guarantees of every command: its failure undoes it alone. There is one rider at a time,
// which alight ends. Nil: the writer takes no more commands.
func (w *Writer) hitch(fn Command) *waiting {
	c := w.pool.Get().(*waiting)
	c.fn, c.ctx = fn, context.Background()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.recycle(c)
		return nil
	}
	w.rider = c
	return c
}

// alight ends the ride. A rider that no group took has not run and never will; one that was taken is waited for, and err is its answer.
func (w *Writer) alight(c *waiting) (taken bool, err error) {
	if c == nil {
		return false, nil
	}
	w.mu.Lock()
	taken = w.rider != c
	if !taken {
		w.rider = nil
	}
	w.mu.Unlock()
	if !taken {
		w.recycle(c)
		return false, nil
	}
	<-c.answered
	return true, w.finish(c)
}

// takeAlong runs the rider, if there is one and the group has something to commit. It answers false when the transaction can no longer be
// committed.
func (w *Writer) takeAlong() (whole bool) {
	if len(w.group.kept) == 0 || w.group.noRide {
		return true
	}
	w.mu.Lock()
	c := w.rider
	if w.closed {
		c = nil // it has no time left for what it would begin
	} else {
		w.rider = nil
	}
	w.mu.Unlock()
	return c == nil || !c.start() || w.execute(c)
}

// place is one in the order of what the writer runs.
type place struct {
	group int64
	kept  int
}

// place is the next one. Only commands and hooks may ask.
func (w *Writer) place() place { return place{w.groups, len(w.group.kept)} }
