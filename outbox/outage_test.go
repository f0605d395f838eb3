package outbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestOutageTouchesNoMessage takes the store away while an attempt runs: its outcome waits, nothing is charged or sent again, and what it was is
// settled once the store is back (P24, P26).
func TestOutageTouchesNoMessage(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	started, release := make(chan struct{}, 10), make(chan struct{})
	var r recorder
	r.answer = func(Delivery) error {
		started <- struct{}{}
		<-release
		return nil
	}
	d := b.dispatcher(t, Config{}, handler("h", "*", &r))
	b.stage(t, event(1))
	<-started
	other, err := sql.Open("sqlite", "file:"+b.path+dsnOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	eventually(t, "the outage is seen", func() bool { return errors.Is(d.Down(), ErrStoreBusy) })
	if got := b.rows(t)[0]; got.State != "processing" || got.Attempt != 1 || got.LastError.Valid {
		t.Errorf("during the outage: %+v", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "settled", func() bool { return b.rows(t)[0].State == "dispatched" && d.Down() == nil })
	if got := b.rows(t)[0]; got.Attempt != 1 || got.Charged != 1 || got.LastError.Valid || r.count() != 1 {
		t.Errorf("afterwards: %+v, %d received", got, r.count())
	}
}

// TestOutageIsPolledWithGrowingPauses: the store is asked less and less often, within a bound, and the log tells once (P25).
func TestOutageIsPolledWithGrowingPauses(t *testing.T) {
	t.Parallel()
	backoff, last := storeBackoff(), time.Duration(0)
	for n := range 40 {
		wait, stop := backoff.Next()
		if stop || wait <= 0 || wait > 6*time.Second || n < 6 && wait < last || n > 10 && wait < 3*time.Second {
			t.Fatalf("pause %d is %s after %s", n, wait, last)
		}
		last = wait
	}
	var log bytes.Buffer
	d := &Dispatcher{config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	for range 100 {
		d.setDown(ErrStoreIO)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines:\n%s", lines, &log)
	}
}

// TestHandlersRunAfterTheirClaimIsCommitted: whoever is called finds its claim, and the message, in the file: no transaction is open while it
// talks to its target, and nothing is sent that the commit has not made true (P13, P15).
func TestHandlersRunAfterTheirClaimIsCommitted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "thing-done")
	var early atomic.Int64
	var r recorder
	r.answer = func(d Delivery) error {
		var state string
		var fence Fence
		err := b.read.DB.QueryRowContext(context.Background(), `SELECT state, fence FROM outbox_deliveries WHERE id = ?`, int64(d.ID)).Scan(&state, &fence)
		if err != nil || state != "processing" || fence != d.Fence {
			early.Add(1)
		}
		return nil
	}
	b.dispatcher(t, Config{}, handler("h", "*", &r))
	for i := range 20 {
		b.stage(t, event(i))
	}
	eventually(t, "all dispatched", func() bool {
		for _, row := range b.rows(t) {
			if row.State != "dispatched" {
				return false
			}
		}
		return true
	})
	if n := early.Load(); n > 0 {
		t.Errorf("%d were called before their claim was committed", n)
	}
}
