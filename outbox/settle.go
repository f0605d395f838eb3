package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/posthorn/posthorn/outbox/mutant"
)

// Each settling statement names the lease and the fence: whoever lost either changes nothing (P16).
const underLease = ` WHERE state = 'processing' AND lease_owner = ? AND fence = ? AND id `

const settleDispatched = `UPDATE outbox_deliveries SET state = 'dispatched', completed_at = ?, suppressed = ?,
  lease_owner = NULL, lease_expires_at = NULL, interrupted = 0, blocks = NULL, unreachable_at = NULL` + underLease + `IN (SELECT value FROM json_each(?))`

const settlePending = `UPDATE outbox_deliveries SET state = 'pending', next_attempt_at = ?, blocked = 0, charged = ?, waited = ?, last_error = ?,
  failure_class = ?, unreachable_at = ?, lease_owner = NULL, lease_expires_at = NULL, interrupted = 0` + underLease + `= ?`

const settleDeadLetter = `UPDATE outbox_deliveries SET state = 'dead-letter', completed_at = ?, charged = ?, last_error = ?,
  failure_class = ?, blocks = ?, lease_owner = NULL, lease_expires_at = NULL, interrupted = 0` + underLease + `= ?`

const insertAttempt = `INSERT INTO outbox_attempts(delivery, attempt, fence, charged, class, status, error, excerpt, started_at, duration)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// maxErrorText bounds the error summary kept for a delivery and for each attempt, in bytes.
const maxErrorText = 1024

// outcome is an attempt that ended and waits to be settled.
type outcome struct {
	attempt *attempt
	failure *Failure // nil: delivered
	ended   time.Time
	took    time.Duration
	ahead   time.Duration // how far the clock has jumped ahead since it began
	outage  bool          // the lane's breaker is open
	orphan  bool          // the handler was removed meanwhile; known when it is settled
	// settled: the handler's own transaction has settled it already (InTx).
	settled    bool
	suppressed bool
	stale      bool
	verdict    verdict
	due        time.Time // when it is tried again, by the wall clock
}

// settleAll records the outcomes under their leases. What lost its lease is marked stale and left alone.
func (d *Dispatcher) settleAll(ctx context.Context, tx *Tx, outcomes []outcome) error {
	byFence := map[Fence][]Delivery{}
	index := map[DeliveryID]int{}
	for i := range outcomes {
		o := &outcomes[i]
		o.stale = false
		switch {
		case o.settled:
		case o.failure != nil:
			if err := d.settleFailure(ctx, tx, o); err != nil {
				return err
			}
		default:
			dl := o.attempt.delivery
			byFence[dl.Fence] = append(byFence[dl.Fence], dl)
			index[dl.ID] = i
		}
	}
	for fence, ds := range byFence {
		n, err := execCount(ctx, tx, settleDispatched, micros(tx.Now), 0, d.owner, int64(fence), idList(ds))
		if err != nil {
			return fmt.Errorf("settle deliveries: %w", err)
		}
		if n == int64(len(ds)) {
			continue
		}
		// Some lost their lease: their rows are no longer what this fence wrote.
		for _, dl := range ds {
			var ours bool
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM outbox_deliveries WHERE id = ? AND state = 'dispatched' AND fence = ?`,
				int64(dl.ID), int64(fence)).Scan(&ours); err != nil {
				return fmt.Errorf("settle deliveries: %w", err)
			}
			outcomes[index[dl.ID]].stale = !ours
		}
	}
	for i := range outcomes {
		if o := &outcomes[i]; !o.settled && o.failure == nil && !o.stale {
			if err := unblock(ctx, tx, o.attempt.delivery); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleFailure returns the delivery to pending or makes it a dead letter, and keeps the evidence.
func (d *Dispatcher) settleFailure(ctx context.Context, tx *Tx, o *outcome) error {
	dl, f := o.attempt.delivery, o.failure
	t := trial{attempt: dl.Attempt, charged: dl.Charged, waited: time.Duration(dl.waited) * time.Microsecond, outage: o.outage}
	since := dl.unreachableSince // kept by an attempt that tells nothing about the target
	if since != 0 {
		since = min(since+o.ahead.Microseconds(), micros(tx.Now))
	}
	if f.Class == Unreachable {
		if since == 0 {
			since = micros(tx.Now)
		}
		t.unreachable = tx.Now.Sub(fromMicros(since))
	} else if f.Class != Interrupted {
		since = 0
	}
	v := d.config.Retry.judge(f, t)
	text := f.Error()
	known, skips := d.registered(dl.Handler)
	if o.orphan = !known; o.orphan && !v.dead {
		// What waited was cancelled when the handler was removed.
		v.dead, v.class, text = true, Cancelled, "the handler was removed during this attempt, which ended so: "+text
	}
	o.verdict, o.due = v, tx.Now.Add(v.wait)
	text = clip(text, maxErrorText)
	var n int64
	var err error
	if v.dead {
		var blocks any
		if dl.blocks && known && !skips {
			blocks = 1
		}
		n, err = execCount(ctx, tx, settleDeadLetter, micros(tx.Now), v.charged, text, string(v.class), blocks, d.owner, int64(dl.Fence), int64(dl.ID))
		if err == nil && n == 1 && blocks == nil {
			err = unblock(ctx, tx, dl)
		}
	} else {
		n, err = execCount(ctx, tx, settlePending, micros(o.due), v.charged, v.waited.Microseconds(), text, string(f.Class),
			sql.NullInt64{Int64: since, Valid: since != 0}, d.owner, int64(dl.Fence), int64(dl.ID))
		if err == nil && mutant.OrderSkipped {
			_, err = execCount(ctx, tx, `UPDATE outbox_deliveries SET blocked = 0 WHERE state = 'pending' AND handler = ? AND tenant = ? AND ordering_key = ?`,
				string(dl.Handler), string(dl.Message.Tenant), dl.Message.OrderingKey)
		}
	}
	if err != nil {
		return fmt.Errorf("settle delivery %d: %w", dl.ID, err)
	}
	if o.stale = n == 0; o.stale {
		return nil
	}
	if f.Class == Gone && !o.orphan {
		if err := storeHold(ctx, tx, dl.Handler, TargetGone); err != nil {
			return err
		}
	}
	return recordAttempt(ctx, tx, o, text)
}

func recordAttempt(ctx context.Context, tx *Tx, o *outcome, text string) error {
	dl, f := o.attempt.delivery, o.failure
	var status, excerpt any
	if f.Status != 0 {
		status = f.Status
	}
	if f.Excerpt != "" {
		excerpt = clip(f.Excerpt, maxErrorText)
	}
	charged := 0
	if f.Class.charged() {
		charged = 1
	}
	if _, err := execCount(ctx, tx, insertAttempt, int64(dl.ID), dl.Attempt, int64(dl.Fence), charged, string(f.Class), status, text, excerpt,
		micros(o.attempt.started), o.took.Microseconds()); err != nil {
		return fmt.Errorf("record attempt of delivery %d: %w", dl.ID, err)
	}
	return nil
}

// clip shortens s to at most n bytes of valid UTF-8.
func clip(s string, n int) string {
	return strings.ToValidUTF8(s[:min(n, len(s))], "")
}
