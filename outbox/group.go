package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// group is the commands that share one transaction.
type group struct {
	started time.Time
	now     time.Time // what the commands are told
	taken   int       // from the queue
	open    bool      // SQLite's transaction is open
	number  int64     // of the COMMIT; 0: it changes nothing, or none is kept
	alone   bool      // for one command only
	noRide  bool      // nobody may ride along
	kept    []*waiting
	refused []*waiting // undone, each with its own error
	running *waiting
}

func (g *group) reset() {
	clear(g.kept)
	clear(g.refused)
	*g = group{kept: g.kept[:0], refused: g.refused[:0]}
}

// loop runs groups until the writer is closed or stopped.
func (w *Writer) loop() {
	// A command that ends its goroutine ends this one; its group is wound up by the next.
	exited := true
	defer func() {
		if exited {
			go w.loop()
		}
	}()
	for c := w.next(); c != nil; c = w.next() {
		if c.between {
			w.rest(c)
		} else {
			w.run(c)
		}
	}
	exited = false
	w.conn.close(context.Background())
	close(w.done)
}

// next waits for the first command of a group; nil when there will be none any more.
func (w *Writer) next() *waiting {
	for yields := 0; ; {
		w.clear()
		if c := w.again.pop(); c != nil {
			if err := w.stopped(); err != nil {
				c.answer(err)
				continue
			}
			w.group.alone = true
			return c
		}
		w.mu.Lock()
		c := w.pop(false)
		switch {
		case c != nil || w.closed:
			w.mu.Unlock()
			return c
		case yields < 2:
			// The callers that were just answered send again: were the writer found idle, the first of them would go alone.
			w.mu.Unlock()
			yields++
			runtime.Gosched()
		default:
			w.idle = true
			w.mu.Unlock()
			<-w.wake
			yields = 0
		}
	}
}

// clear makes room for the next group.
func (w *Writer) clear() {
	g := &w.group
	if g.running != nil {
		g.refused = append(g.refused, g.running) // it ended the goroutine that ran it
		w.abandon()
	}
	g.reset()
	if w.conn.tx.Tx != nil && w.conn.worn() {
		w.conn.drop(context.Background())
	}
}

// serve runs a command on its sender's goroutine, which is the writer's for that long: an idle writer costs a caller no switch of
// goroutines. Whoever comes meanwhile waits for the loop.
func (w *Writer) serve(c *waiting) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.group.running == nil && w.again.len() == 0 && w.first.len() == 0 && w.queue.len() == 0 && !w.closed {
			w.idle = true
			return
		}
		w.wake <- struct{}{}
	}()
	w.clear()
	w.group.alone = true
	w.run(c)
}

// pop takes the next command; w.mu is held.
func (w *Writer) pop(firstOnly bool) *waiting {
	if c := w.first.peek(); c != nil {
		if c.between && !w.group.started.IsZero() {
			return nil // it waits for this group's end
		}
		return w.first.pop()
	}
	if firstOnly {
		return nil
	}
	c := w.queue.pop()
	if c != nil {
		w.group.taken++
	}
	return c
}

// join waits a moment for one more command to join the group.
func (w *Writer) join() *waiting {
	g := &w.group
	if g.alone || time.Since(g.started) > w.cfg.GroupTime {
		return nil
	}
	// Callers that were just answered, or are about to send, get the processor twice before the group is closed: that makes
	// groups of two to eight callers fuller by a fifth to a half, and costs nothing when nobody is there.
	for yields := 0; ; yields++ {
		w.mu.Lock()
		c := w.pop(g.taken >= w.cfg.GroupMax)
		w.mu.Unlock()
		if c != nil || yields == 2 || g.taken >= w.cfg.GroupMax {
			return c
		}
		runtime.Gosched()
	}
}

// run runs one group, beginning with c, and answers all of its commands.
func (w *Writer) run(c *waiting) {
	g := &w.group
	w.groups++
	g.started = time.Now()
	g.now = w.cfg.Now().UTC().Truncate(time.Microsecond)
	for ; c != nil; c = w.join() {
		// First the transaction, which may have to wait for another process: until then the sender may leave.
		if err := w.begin(); err != nil {
			w.turnAway(c, storeError(err))
			return
		}
		if !c.start() {
			continue
		}
		if !w.execute(c) {
			w.abandon()
			return
		}
	}
	if !w.takeAlong() {
		w.abandon()
		return
	}
	w.commit()
}

// rest runs what wants no transaction to be open.
func (w *Writer) rest(c *waiting) {
	if c.start() {
		w.group.running = c
		c.run(nil, w.cfg.Logger)
		w.group.running = nil
		c.answer(c.err)
	}
}

// begin makes sure that the group's transaction is open.
func (w *Writer) begin() error {
	g := &w.group
	if g.open {
		return nil
	}
	for fresh := false; ; fresh = true {
		if err := w.conn.ready(context.Background()); err != nil {
			return err
		}
		err := w.conn.exec(w.conn.begin)
		if err == nil {
			break
		}
		// Whatever stands in the way on our side goes with the hold: rows that a command left open and that keep an old snapshot, or
		// a connection that went bad.
		w.conn.drop(context.Background())
		if code, found := sqliteCode(err); fresh || found && code != sqlite3.SQLITE_BUSY_SNAPSHOT {
			return fmt.Errorf("begin transaction: %w", err)
		}
	}
	w.conn.guard.lost.Store(false)
	g.open = true
	return nil
}

// execute runs one command in the open transaction. It answers false when the transaction can no longer be committed.
//
// The first command of a transaction needs no savepoint: the transaction is undone in its stead.
func (w *Writer) execute(c *waiting) (whole bool) {
	g, conn := &w.group, &w.conn
	nested := len(g.kept) > 0
	if nested {
		if err := conn.exec(conn.savepoint); err != nil {
			g.kept = append(g.kept, c) // it was not run, and will be, alone
			return false
		}
	}
	tx := &Tx{Tx: conn.tx, Now: g.now, conn: conn}
	g.running = c
	c.run(tx, w.cfg.Logger)
	g.running = nil

	if conn.guard.lost.Load() {
		if c.err == nil {
			c.err = ErrTxLost
		}
		c.err = storeError(c.err)
		g.refused = append(g.refused, c)
		return false
	}
	if c.err == nil && nested {
		if err := conn.exec(conn.release); err != nil {
			c.err = fmt.Errorf("%w: %w", ErrTxLost, err)
			g.refused = append(g.refused, c)
			return false
		}
	}
	if c.err == nil {
		c.after = tx.after
		g.noRide = g.noRide || tx.noRide
		g.kept = append(g.kept, c)
		return true
	}
	g.refused = append(g.refused, c)
	if code, found := sqliteCode(c.err); found && primary(code) != sqlite3.SQLITE_CONSTRAINT {
		c.err = storeError(c.err)
		if errors.Is(c.err, ErrCorrupt) {
			w.fail(c.err)
		}
		return false
	}
	return w.undo(nested)
}

// undo undoes the last command.
func (w *Writer) undo(nested bool) (whole bool) {
	conn := &w.conn
	if nested {
		return conn.exec(conn.undo) == nil && conn.exec(conn.release) == nil
	}
	w.group.open = false
	return conn.exec(conn.rollback) == nil
}
