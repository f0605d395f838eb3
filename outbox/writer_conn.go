package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
	"github.com/uptrace/bun"
	"modernc.org/sqlite"
)

const (
	// connLife bounds how long rows that a command forgot to close can hold a snapshot, and so keep the WAL from being reset.
	connLife = 10 * time.Second
	// connStatements bounds the prepared statements that are kept.
	connStatements = 512
)

// writerConn is the writer's hold on its one connection.
//
// It keeps a single sql.Tx open for as long as it can and begins and commits SQLite's transactions beneath it, by statements
// prepared once. A new sql.Tx for each group would cost a goroutine, a context and every statement's binding each time, a tenth
// of what a group of one takes.
type writerConn struct {
	db     *bun.DB
	conn   bun.Conn
	tx     bun.Tx
	opened time.Time
	guard  guard
	status sqlite.DBStatus
	stmts  map[string]*sql.Stmt

	begin, commit, rollback, savepoint, release, undo *sql.Stmt

	changes int64 // rows changed on this connection as of the last COMMIT that was numbered
}

// guard is told by SQLite itself what becomes of the transaction, so that no statement of a command can end it unnoticed.
type guard struct {
	// committing allows a COMMIT; SQLite turns every other one, explicit or automatic, into a rollback.
	committing atomic.Bool
	// lost is set by every rollback of a whole transaction.
	lost atomic.Bool
}

func (g *guard) onCommit() int32 {
	if g.committing.Load() {
		return 0
	}
	return 1
}

func (g *guard) onRollback() { g.lost.Store(true) }

// open takes the connection, or takes it anew, with no transaction open.
func (c *writerConn) open(ctx context.Context) (err error) {
	c.drop(ctx)
	defer func() {
		if err != nil {
			c.close(ctx)
		}
	}()
	if c.conn.Conn == nil {
		if c.conn, err = c.db.Conn(ctx); err != nil {
			return fmt.Errorf("take the writer's connection: %w", err)
		}
		c.changes = 0
		if err = c.conn.Raw(c.watch); err != nil {
			return fmt.Errorf("watch the writer's connection: %w", err)
		}
	}
	// A read-only BeginTx is a plain BEGIN, which takes no lock: it may not wait for another process here.
	if c.tx, err = c.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return fmt.Errorf("open the writer's transaction: %w", err)
	}
	if _, err = c.tx.Tx.ExecContext(ctx, "ROLLBACK"); err != nil {
		return fmt.Errorf("close the writer's first transaction: %w", err)
	}
	// A name that no command can guess, so that what it releases and rolls back to is its own.
	savepoint := "posthorn_" + rand.Text()
	for _, s := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&c.begin, mutant.SQL("BEGIN IMMEDIATE")},
		{&c.commit, "COMMIT"},
		{&c.rollback, "ROLLBACK"},
		{&c.savepoint, "SAVEPOINT " + savepoint},
		{&c.release, "RELEASE " + savepoint},
		{&c.undo, "ROLLBACK TO " + savepoint},
	} {
		if *s.into, err = c.tx.Tx.PrepareContext(ctx, s.query); err != nil {
			return fmt.Errorf("prepare %s: %w", s.query, err)
		}
	}
	if _, err = c.pages(); err != nil { // what was written before is nobody's commit
		return fmt.Errorf("reset the page counter: %w", err)
	}
	c.opened = time.Now()
	c.stmts = make(map[string]*sql.Stmt)
	return nil
}

// watch sets the hooks on the driver's connection, through whatever wraps it.
func (c *writerConn) watch(driverConn any) error {
	for {
		hooks, ok := driverConn.(sqlite.HookRegisterer)
		if ok {
			hooks.RegisterCommitHook(c.guard.onCommit)
			hooks.RegisterRollbackHook(c.guard.onRollback)
			c.status, ok = driverConn.(sqlite.DBStatus)
		}
		if ok {
			return nil
		}
		wrapper, ok := driverConn.(interface{ Unwrap() driver.Conn })
		if !ok {
			return fmt.Errorf("connection %T is not one of modernc.org/sqlite and has no Unwrap", driverConn)
		}
		driverConn = wrapper.Unwrap()
	}
}

// drop ends the transaction and its statements, with the rows that were left open, but keeps the connection.
func (c *writerConn) drop(ctx context.Context) {
	if c.tx.Tx == nil {
		return
	}
	// Its error says at most that no transaction is open, or that a command ended the sql.Tx: then what SQLite has open is ended here.
	_ = c.tx.Tx.Rollback()
	c.tx, c.stmts = bun.Tx{}, nil
	if c.conn.Conn != nil {
		if _, err := c.conn.Conn.ExecContext(ctx, "ROLLBACK"); errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
			c.close(ctx)
		}
	}
}

// close gives the connection back.
func (c *writerConn) close(ctx context.Context) {
	c.drop(ctx)
	if c.conn.Conn == nil {
		return
	}
	_ = c.conn.Conn.Raw(func(driverConn any) error {
		for {
			if hooks, ok := driverConn.(sqlite.HookRegisterer); ok {
				hooks.RegisterCommitHook(nil)
				hooks.RegisterRollbackHook(nil)
				return nil
			}
			wrapper, ok := driverConn.(interface{ Unwrap() driver.Conn })
			if !ok {
				return nil
			}
			driverConn = wrapper.Unwrap()
		}
	})
	_ = c.conn.Conn.Close()
	c.conn = bun.Conn{}
}

// ready makes sure that the hold is there.
func (c *writerConn) ready(ctx context.Context) error {
	if c.tx.Tx != nil {
		return nil
	}
	return c.open(ctx)
}

// worn says that the hold should be renewed when no transaction is open.
func (c *writerConn) worn() bool {
	return len(c.stmts) > connStatements || time.Since(c.opened) > connLife
}

func (c *writerConn) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.tx.Tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare statement: %w", err)
	}
	c.stmts[query] = s
	return s, nil
}

// pages returns how many pages were written since it was last asked.
func (c *writerConn) pages() (written int, err error) {
	err = c.conn.Raw(func(any) (err error) {
		written, _, err = c.status.Status(sqlite.DBStatusCacheWrite, true)
		return err
	})
	return written, err
}

// numberCommit counts the COMMIT that comes next, if rows were changed since the last one that was counted. The count's own row is counted after
// the statement.
const numberCommit = `INSERT INTO posthorn_meta(name, value) SELECT 'commits', 1 WHERE total_changes() <> ?
ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value, total_changes() + 1`

// number gives the open transaction its number; 0 when it changes nothing.
func (c *writerConn) number() (number int64, err error) {
	stmt, err := c.stmt(context.Background(), numberCommit)
	if err != nil {
		return 0, fmt.Errorf("number commit: %w", err)
	}
	if err = stmt.QueryRowContext(context.Background(), c.changes).Scan(&number, &c.changes); errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("number commit: %w", err)
	}
	return number, nil
}

// exec executes one of the connection's own statements.
func (c *writerConn) exec(s *sql.Stmt) error {
	_, err := s.ExecContext(context.Background())
	return err
}
