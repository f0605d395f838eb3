package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
	"modernc.org/sqlite"
)

// use is what a connection is for.
type use int

const (
	writing use = iota
	reading
	upkeep
	probing // before anything may be changed: is this a file of ours?
)

const (
	// walLimit is what the WAL file is cut back to when it is reset.
	walLimit = 64 << 20
	// fullSync makes a COMMIT wait until the disk has it: an acknowledged command survives a power cut. NORMAL loses some.
	fullSync = "2"
	inMemory = "2"
)

// setting is one pragma, as it must be read back.
type setting struct{ pragma, want string }

// settings lists what a connection must have.
func settings(u use, busy time.Duration, fresh bool) []setting {
	list := []setting{
		{"busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10)},
		{"trusted_schema", "0"},
		{"cell_size_check", "1"},
		{"query_only", "0"},
	}
	if u == reading || u == probing {
		list[3].want = "1"
	}
	if u == probing {
		return list
	}
	_, level := syncLevel()
	list = append(list,
		setting{"journal_mode", "wal"},
		setting{"synchronous", level},
		setting{"foreign_keys", "1"},
		setting{"journal_size_limit", strconv.Itoa(walLimit)},
		// Checkpoints are the checkpointer's, not the caller's whose COMMIT happens to fill the WAL.
		setting{"wal_autocheckpoint", "0"},
		setting{"encoding", "UTF-8"},
	)
	if u == writing {
		// What a savepoint may have to undo is kept in memory: the default writes it to a temporary file once it is 64 KiB.
		list = append(list, setting{"temp_store", inMemory})
	}
	if fresh {
		list = append(list, setting{"auto_vacuum", "2"})
	}
	return list
}

// syncLevel is what a COMMIT waits for, by its name and as it is read back.
func syncLevel() (name, level string) {
	switch {
	case mutant.SynchronousNormal:
		return "NORMAL", "1"
	case mutant.SynchronousOff:
		return "OFF", "0"
	}
	return "FULL", fullSync
}

// dsn writes the settings as the driver takes them: by its checked keys where there is one. A misspelt _pragma is ignored, which is
// one reason why all are read back.
func (f *file) dsn(u use, busy time.Duration) string {
	q := url.Values{}
	q.Set("mode", "rw") // SQLite never creates the file: it would be readable by others
	if u == probing && f.marked {
		q.Set("mode", "ro") // the last connection that may write would write the WAL back and remove it
	}
	q.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	q.Set("_dqs", "0")
	q.Set("_defensive", "1")
	q.Set("_error_rc", "1")
	q.Set("_time_integer_format", "unix_micro")
	q.Add("_pragma", "trusted_schema(0)")
	q.Add("_pragma", "cell_size_check(1)")
	if u == reading || u == probing {
		q.Set("_query_only", "1")
	}
	if u != probing {
		if !f.guest {
			q.Set("_journal_mode", "WAL")
		}
		name, _ := syncLevel()
		q.Set("_synchronous", name)
		q.Set("_foreign_keys", "1")
		q.Add("_pragma", fmt.Sprintf("journal_size_limit(%d)", walLimit))
		q.Add("_pragma", "wal_autocheckpoint(0)")
	}
	if u == writing || u == upkeep {
		q.Set("_txlock", "immediate")
	}
	if u == writing {
		q.Add("_pragma", "temp_store(memory)")
	}
	if u == writing && f.fresh {
		q.Set("_auto_vacuum", "INCREMENTAL")
	}
	return f.name() + "?" + q.Encode()
}

// name is the file's as SQLite takes it.
func (f *file) name() string { return "file:" + (&url.URL{Path: f.path}).EscapedPath() }

// connector opens connections to one file for one use, and refuses those that are not as they should be.
type connector struct {
	driver.Connector
	file *file
	use  use
	busy time.Duration
}

func newConnector(f *file, u use, busy time.Duration) (driver.Connector, error) {
	base, err := sqlite.NewConnector(f.dsn(u, busy))
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return &connector{base, f, u, busy}, nil
}

// Connect opens one connection, reads its settings back and makes sure that it leads to the file that was opened first.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, openError(errors.Join(err, c.file.verify()))
	}
	if c.file.attached != nil && c.use != probing {
		err = c.file.attached.attachTo(ctx, conn)
	}
	if err == nil {
		err = c.check(ctx, conn)
	}
	if err != nil {
		conn.Close()
		return nil, openError(err)
	}
	return conn, nil
}

func (c *connector) check(ctx context.Context, conn driver.Conn) error {
	if err := c.file.verify(); err != nil {
		return err
	}
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return fmt.Errorf("connection %T cannot be asked for its settings", conn)
	}
	for _, s := range settings(c.use, c.busy, c.file.fresh) {
		got, err := readPragma(ctx, q, s.pragma)
		if err != nil {
			return fmt.Errorf("read setting %s: %w", s.pragma, err)
		}
		if !strings.EqualFold(got, s.want) {
			return fmt.Errorf("%w: %s is %q, must be %q", ErrSetting, s.pragma, got, s.want)
		}
	}
	return nil
}

func readPragma(ctx context.Context, q driver.QueryerContext, pragma string) (string, error) {
	rows, err := q.QueryContext(ctx, "PRAGMA "+pragma, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	value := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(value); errors.Is(err, io.EOF) || err == nil && len(value) == 0 {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return fmt.Sprint(value[0]), nil
}
