package lending

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/mediator"
)

// exec changes rows in the unit of work, and reports how many.
func exec(ctx context.Context, work *mediator.UnitOfWork, what, query string, args ...any) (int64, error) {
	stmt, err := work.Stmt(ctx, query)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return result.RowsAffected()
}

// find reads one row in the unit of work; false when there is none.
func find(ctx context.Context, work *mediator.UnitOfWork, what, query string, args []any, into ...any) (bool, error) {
	stmt, err := work.Stmt(ctx, query)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	err = stmt.QueryRowContext(ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	return true, nil
}

const selectAccount = `SELECT m.suspended,
  (SELECT count(*) FROM lending_loans l WHERE l.tenant = m.tenant AND l.member = m.id AND l.returned_at IS NULL),
  (SELECT min(due_at) FROM lending_loans l WHERE l.tenant = m.tenant AND l.member = m.id AND l.returned_at IS NULL),
  (SELECT count(*) FROM lending_reservations r WHERE r.tenant = m.tenant AND r.member = m.id AND r.ended_at IS NULL)
FROM lending_members m WHERE m.tenant = ? AND m.id = ?`

// accountOf reads what the rules ask of a member.
func accountOf(ctx context.Context, work *mediator.UnitOfWork, member string) (a account, err error) {
	var due sql.NullInt64
	ok, err := find(ctx, work, "read member", selectAccount, []any{string(work.By.Tenant), member}, &a.suspended, &a.loans, &due, &a.reserved)
	if err == nil && !ok {
		err = missing("unknown-member", "There is no such member.")
	}
	if due.Valid {
		a.oldestDue = moment(due.Int64)
	}
	return a, err
}

const selectQueue = `SELECT
  (SELECT count(*) FROM lending_copies c WHERE c.tenant = ?1 AND c.work = ?2 AND c.state = 'shelf'),
  (SELECT count(*) FROM lending_reservations r JOIN lending_members m ON m.tenant = r.tenant AND m.id = r.member
   WHERE r.tenant = ?1 AND r.work = ?2 AND r.state = 'waiting' AND m.suspended = 0 AND r.member <> ?3)`

// queueOf reads what the rules ask of a work; waiting leaves the one member out.
func queueOf(ctx context.Context, work *mediator.UnitOfWork, of, without string) (q queue, err error) {
	_, err = find(ctx, work, "read queue", selectQueue, []any{string(work.By.Tenant), of, without}, &q.free, &q.waiting)
	return q, err
}

// copyRow is a copy as the rules and the use cases need it.
type copyRow struct {
	id, work, title, state string
	loan, reservation      sql.NullString
}

const selectCopy = `SELECT id, work, title, state, loan, reservation FROM lending_copies WHERE tenant = ? AND id = ?`

func copyOf(ctx context.Context, work *mediator.UnitOfWork, id string) (c copyRow, err error) {
	ok, err := find(ctx, work, "read copy", selectCopy, []any{string(work.By.Tenant), id}, &c.id, &c.work, &c.title, &c.state, &c.loan, &c.reservation)
	if err == nil && !ok {
		err = missing("unknown-copy", "There is no such copy.")
	}
	return c, err
}

// A copy's state is changed from the one that was read, and from no other.
const moveCopy = `UPDATE lending_copies SET state = ?, loan = ?, reservation = ? WHERE tenant = ? AND id = ? AND state = ?`

var errMoved = errors.New("the copy is not where it was read")

func move(ctx context.Context, work *mediator.UnitOfWork, c copyRow, state string, loan, reservation any) error {
	n, err := exec(ctx, work, "move copy", moveCopy, state, loan, reservation, string(work.By.Tenant), c.id, c.state)
	if err == nil && n != 1 {
		err = errMoved
	}
	return err
}

// microsOf is how the store keeps a time.
func microsOf(t time.Time) int64 { return t.UnixMicro() }
