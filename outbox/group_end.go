package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/posthorn/posthorn/outbox/mutant"
	sqlite3 "modernc.org/sqlite/lib"
)

// turnAway answers c, and as many commands as would have been its group, when no transaction can be begun: a wait for another
// process's lock is not waited for once each.
func (w *Writer) turnAway(c *waiting, err error) {
	if errors.Is(err, ErrCorrupt) {
		w.fail(err)
	}
	g := &w.group
	for c != nil {
		if c.start() {
			g.kept = append(g.kept, c)
		}
		if g.alone || g.taken >= w.cfg.GroupMax {
			break
		}
		w.mu.Lock()
		c = w.pop(false)
		w.mu.Unlock()
	}
	for _, c := range g.kept {
		c.answer(err)
	}
	w.answerRefused()
}

// abandon gives the group's transaction up: nobody is acknowledged, and what had not failed is run again, each in a transaction of
// its own, so that what spoiled the group can spoil nothing else.
func (w *Writer) abandon() {
	g := &w.group
	w.conn.drop(context.Background())
	g.open = false
	for _, c := range g.kept {
		w.again.push(c)
	}
	w.answerRefused()
}

// stillWriting is in SQLite's refusal of a COMMIT while the rows of a write are open. Its code is that of a lock held by another process,
// after which a sender would try again in vain.
const stillWriting = "SQL statements in progress"

// commit commits the group and answers it.
func (w *Writer) commit() {
	g, conn := &w.group, &w.conn
	if len(g.kept) == 0 {
		if g.open {
			w.undo(false)
		}
		w.answerRefused()
		return
	}
	if err := w.stopped(); err != nil && !errors.Is(err, ErrClosed) {
		w.answerAll(err)
		return
	}
	if mutant.AnswerBeforeCommit {
		for _, c := range g.kept {
			c.answer(nil)
		}
		g.kept = g.kept[:0]
	}
	if w.cfg.Mark != nil {
		var err error
		if g.number, err = conn.number(); err != nil {
			w.giveUp(err)
			return
		}
	}
	conn.guard.committing.Store(true)
	err := conn.exec(conn.commit)
	conn.guard.committing.Store(false)
	g.open = false
	if err == nil {
		w.committed()
		for _, c := range g.kept {
			c.answer(nil)
		}
		w.answerRefused()
		return
	}
	code, found := sqliteCode(err)
	switch {
	case lostTx(err):
		w.giveUp(err)
	case found && primary(code) == sqlite3.SQLITE_CONSTRAINT:
		// A deferred constraint, which one command broke: alone, each is judged by its own.
		w.giveUp(fmt.Errorf("commit: %w", err))
	case found && !w.cfg.TwoFiles && (primary(code) == sqlite3.SQLITE_BUSY || primary(code) == sqlite3.SQLITE_FULL || mutant.DoubtIgnored):
		conn.drop(context.Background())
		err = storeError(fmt.Errorf("commit: %w", err))
		for _, c := range g.kept {
			c.answer(err)
		}
		w.answerRefused()
	default:
		err = fmt.Errorf("%w: %w", ErrInDoubt, err)
		w.fail(err)
		w.answerAll(err)
	}
}

// lostTx: a command ended the sql.Tx without its transaction, so that a COMMIT has not reached SQLite; or it left rows of a write open.
func lostTx(err error) bool {
	code, _ := sqliteCode(err)
	return errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) || primary(code) == sqlite3.SQLITE_BUSY && strings.Contains(err.Error(), stillWriting)
}

// giveUp abandons a group that was not committed. A command that was alone in it is answered err: it would fare no better again.
func (w *Writer) giveUp(err error) {
	if lostTx(err) {
		err = fmt.Errorf("%w: %w", ErrTxLost, err)
	} else {
		err = storeError(err)
	}
	if errors.Is(err, ErrCorrupt) {
		w.fail(err)
	}
	if g := &w.group; len(g.kept) == 1 {
		g.kept[0].answer(err)
		g.kept = g.kept[:0]
	}
	w.abandon()
}

// committed tells the mark and the hooks, if the COMMIT wrote anything.
func (w *Writer) committed() {
	pages, err := w.conn.pages()
	if err == nil && pages == 0 {
		return
	}
	w.written.Add(int64(pages))
	if w.group.number > 0 {
		w.cfg.Mark(w.group.number)
	}
	w.mu.Lock()
	hooks := w.hooks
	w.mu.Unlock()
	for _, hook := range hooks {
		w.callback("on-commit hook panicked", hook)
	}
}

func (w *Writer) answerRefused() {
	for _, c := range w.group.refused {
		c.answer(c.err)
	}
}

// answerAll gives every command of the group the same answer.
func (w *Writer) answerAll(err error) {
	for _, c := range w.group.kept {
		c.answer(err)
	}
	for _, c := range w.group.refused {
		c.answer(err)
	}
}

// fail stops the writer for good.
func (w *Writer) fail(err error) {
	w.cfg.Logger.Error("writer stopped", "error", err)
	w.stop(err)
}
