package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/guest"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

// ErrOlderCopy is answered when another program's database is behind its marks.
var ErrOlderCopy = errors.New("the database is an older copy of itself")

const (
	// marksInterval is how often it is written down how far the database has come. What a restore takes back of the last second is not noticed.
	marksInterval = time.Second
	// restoredFence is how far the fence is raised over a restored copy: beyond all that can have been given since it was made.
	restoredFence = 1 << 32
)

// The bounds of a group in another program's database, and after how many pages they are written back: before that program's own connections would.
const (
	guestGroupTime = 5 * time.Millisecond
	guestGroupMax  = 128
	guestPages     = 500
)

const currentMarks = `SELECT 'messages', coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'outbox_messages'), 0)
UNION ALL SELECT 'deliveries', coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'outbox_deliveries'), 0)
UNION ALL SELECT 'fence', value FROM main.posthorn_meta WHERE name = 'fence'`

const (
	findBehind = `WITH now(name, value) AS (` + currentMarks + `)
SELECT m.name, m.value, n.value FROM control.posthorn_marks m JOIN now n ON n.name = m.name WHERE n.value < m.value ORDER BY m.name LIMIT 1`
	keepMarks = `INSERT INTO control.posthorn_marks(name, value) SELECT * FROM (` + currentMarks + `) WHERE true
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value < excluded.value`
	countMarks = `WITH now(name, value) AS (` + currentMarks + `) SELECT sum(value) FROM now`
)

// After a restore: what was given out once is never given out again.
const (
	restoreSequence = `UPDATE main.sqlite_sequence SET seq = max(seq, (SELECT value FROM control.posthorn_marks WHERE name = ?1)) WHERE name = ?2`
	insertSequence  = `INSERT INTO main.sqlite_sequence(name, seq) SELECT ?2, value FROM control.posthorn_marks WHERE name = ?1
AND NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = ?2)`
	restoreFence = `UPDATE main.posthorn_meta SET value = max(value, (SELECT value FROM control.posthorn_marks WHERE name = 'fence')) + ? WHERE name = 'fence'`
)

// compareMarks refuses a database that is behind its marks, or brings it beyond them when that is accepted, and tells how
// much is lost: of the first mark, in its own numbers, and in words.
func compareMarks(ctx context.Context, tx *outbox.Tx, accept bool) (lost int64, sentence string, err error) {
	rows, err := tx.Tx.Tx.QueryContext(ctx, findBehind)
	if err != nil {
		return 0, "", fmt.Errorf("compare marks: %w", err)
	}
	behind := error(nil)
	for rows.Next() {
		var name string
		var seen, now int64
		if err := rows.Scan(&name, &seen, &now); err != nil {
			_ = rows.Close()
			return 0, "", fmt.Errorf("compare marks: %w", err)
		}
		behind = fmt.Errorf("%w: it had come to %s %d before, and is at %d now", ErrOlderCopy, name, seen, now)
		lost = max(lost, seen-now)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, "", fmt.Errorf("compare marks: %w", err)
	}
	if behind == nil {
		return 0, "", nil
	}
	if !accept {
		return 0, "", behind
	}
	for mark, table := range map[string]string{"messages": "outbox_messages", "deliveries": "outbox_deliveries"} {
		for _, query := range []string{insertSequence, restoreSequence} {
			if _, err := tx.Tx.Tx.ExecContext(ctx, query, mark, table); err != nil {
				return 0, "", fmt.Errorf("go on with a restored copy: %w", err)
			}
		}
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, restoreFence, restoredFence); err != nil {
		return 0, "", fmt.Errorf("go on with a restored copy: %w", err)
	}
	return lost, behind.Error(), nil
}

// arrive makes sure that the database is not behind its marks, or makes it safe to go on with it and writes down who accepted that.
func (a *Appliance) arrive(ctx context.Context) error {
	if a.options.DB == "" && a.store.Lost() == nil {
		return nil
	}
	var sentence string
	err := a.store.Writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) (err error) {
		if lost := a.store.Lost(); lost != nil {
			a.lost, sentence = lost.Marked-lost.Found, lost.Error()
			err = lost.Accept(ctx, tx, restoredFence)
		} else {
			a.lost, sentence, err = compareMarks(ctx, tx, a.options.AcceptLostTail)
		}
		if err != nil || a.lost == 0 {
			return err
		}
		return access.Audit(ctx, tx, access.LocalPrincipal(), "store.accept-lost-tail", DatabaseName, sentence)
	})
	if a.options.DB != "" {
		contract, contractErr := guest.ReadContract(ctx, besideSchema(a.options.Build.Schema))
		err = errors.Join(err, contractErr)
		a.whole = &whole{store: a.store, contract: contract, logger: a.logger, anew: a.lost > 0}
		a.marks = &marks{store: a.store, whole: a.whole, logger: a.logger}
	}
	if err == nil && a.lost > 0 {
		a.logger.Warn("going on without the latest commits, as accepted", "lost", sentence)
	}
	return err
}

// marks writes down in the control database how far the other has come.
type marks struct {
	store  *store.Store
	whole  *whole
	logger *slog.Logger
	cancel context.CancelFunc
	done   sync.WaitGroup
	seen   int64
	kept   int64 // how far the outbox was whole, as it is written down
}

func (m *marks) start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.done.Go(func() {
		tick := time.NewTicker(marksInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := m.whole.look(ctx); err != nil && ctx.Err() == nil {
				m.logger.Debug("the schema is not looked at", "error", err)
			}
			if err := m.keep(ctx); err != nil && ctx.Err() == nil {
				m.logger.Debug("marks are not kept", "error", err)
			}
		}
	})
}

// keep writes the marks when they have changed. It takes no lock of the other program's file.
func (m *marks) keep(ctx context.Context) error {
	var sum int64
	if err := m.store.Read.DB.QueryRowContext(ctx, countMarks).Scan(&sum); err != nil {
		return err
	}
	if upTo := m.whole.upTo; m.whole.begun && upTo != m.kept {
		if _, err := m.store.Upkeep.DB.ExecContext(ctx, keepWhole, upTo); err != nil {
			return err
		}
		m.kept = upTo
	}
	if sum == m.seen {
		return nil
	}
	if _, err := m.store.Upkeep.DB.ExecContext(ctx, keepMarks); err != nil {
		return err
	}
	m.seen = sum
	return nil
}

// stop keeps the last marks. The store is open still.
func (m *marks) stop(ctx context.Context) {
	if m.cancel != nil {
		m.cancel()
		m.done.Wait()
	}
	if m.store.Writer.Err() != nil {
		return
	}
	if err := m.keep(ctx); err != nil {
		m.logger.Debug("marks are not kept", "error", err)
	}
}
