package outbox

import (
	"context"
	"fmt"
	"time"
)

// ClockUntrusted is the hold of a lane that needs the right time while the clock shows one before the program was built. It ends by itself.
const ClockUntrusted = "clock untrusted"

const (
	// jumpTolerance is how far the wall clock may leave the monotonic one between two looks, which is as much as a step of NTP does.
	jumpTolerance = time.Second
	// longJump is what an outage's horizon of months notices.
	longJump = time.Hour
	// replanBatch is how many deliveries of a lane one turn puts back to now.
	replanBatch = 10_000
)

// clock holds the wall clock against the monotonic one. What is stored is in the time of the wall, so that people and other programs can
// read it; after a jump it is moved to where it belongs by the monotonic clock, in the turn that notices, before anything is claimed. So a
// jump fires no retry early and strands none. The times that people asked for, deliver_at, stay as they are. Turns alone
// write it.
type clock struct {
	origin time.Time     // monotonic
	offset time.Duration // of the wall, as far as it is accounted for
	ahead  time.Duration // the long jumps ahead so far
}

// read returns the wall clock and by how much it has jumped; zero: not at all.
func (c *clock) read(config Config) (wall time.Time, jump time.Duration) {
	for range 3 {
		before := time.Since(c.origin)
		wall = config.now()
		at := time.Since(c.origin)
		if at-before > jumpTolerance/10 {
			continue // held up between the two clocks
		}
		jump = time.Duration(wall.UnixNano()) - at - c.offset
		if jump.Abs() <= jumpTolerance {
			return wall, 0
		}
		return wall, jump
	}
	return wall, 0
}

// account follows the wall clock, which may drift and be slewed.
func (c *clock) account(wall time.Time) {
	c.offset = time.Duration(wall.UnixNano()) - time.Since(c.origin)
}

// jumped accounts for a jump.
func (c *clock) jumped(jump time.Duration) {
	c.offset += jump
	c.ahead += longAhead(jump)
}

func longAhead(jump time.Duration) time.Duration {
	if jump < longJump {
		return 0
	}
	return jump
}

// trusted says whether the clock shows a time at which this program can be running.
func (c Config) trusted(now time.Time) bool { return !now.Before(c.BuildDate) }

// ClockTrusted says whether the clock can be right. While it cannot, the lanes that need it are held.
func (d *Dispatcher) ClockTrusted() bool { return d.config.trusted(d.config.now()) }

// trustChanged tells of a clock that has become, or is no longer, one to trust. The caller holds d.mu.
func (d *Dispatcher) trustChanged(trusted bool) {
	d.untrusted = !trusted
	for name, l := range d.lanes {
		if l.handler.NeedsClock {
			d.told = append(d.told, name)
		}
	}
	if trusted {
		d.config.Logger.Info("the clock can be trusted again")
		return
	}
	d.config.Logger.Warn("the clock is before this program was built; lanes that need it are held", "build_date", d.config.BuildDate)
}

// A retry keeps its distance from now. What is further off than any retry can be was stored after the jump already.
const shiftRetries = `UPDATE outbox_deliveries SET next_attempt_at = next_attempt_at + ? WHERE id IN (
  SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_due
  WHERE state = 'pending' AND blocked = 0 AND handler = ? AND tenant = ? AND next_attempt_at > ? AND next_attempt_at <= ? AND attempt > 0)`

const shiftOutages = `UPDATE outbox_deliveries SET unreachable_at = unreachable_at + ? WHERE id IN (
  SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ? AND unreachable_at <= ?)`

// shiftLane moves a lane's retries with the clock.
func (d *Dispatcher) shiftLane(ctx context.Context, tx *Tx, handler HandlerName, jump time.Duration) error {
	before := tx.Now.Add(-jump)
	from := before
	if jump < 0 {
		from = tx.Now
	}
	tenants, err := dueTenants(ctx, tx, handler)
	if err != nil {
		return err
	}
	by := jump.Microseconds()
	for _, tenant := range tenants {
		if _, err := execCount(ctx, tx, shiftRetries, by, string(handler), string(tenant), micros(from), micros(before.Add(d.config.Retry.longest()))); err != nil {
			return fmt.Errorf("move retries with the clock: %w", err)
		}
	}
	if longAhead(jump) == 0 {
		return nil
	}
	if _, err := execCount(ctx, tx, shiftOutages, by, string(handler), micros(before)); err != nil {
		return fmt.Errorf("move outages with the clock: %w", err)
	}
	return nil
}

// A delivery that was never tried and is not scheduled is due, whatever the clock said when it was staged. A scheduled one waits for its time.
const replanFresh = `UPDATE outbox_deliveries SET next_attempt_at = ? WHERE id IN (
  SELECT d.id FROM outbox_deliveries d INDEXED BY outbox_deliveries_due JOIN outbox_messages m ON m.seq = d.seq
  WHERE d.state = 'pending' AND d.blocked = 0 AND d.handler = ? AND d.tenant = ? AND d.next_attempt_at > ? AND d.attempt = 0
    AND m.deliver_at IS NOT d.next_attempt_at LIMIT ?)`

// A retry that is further off than any can be is tried within the longest backoff, spread over it.
const replanRetries = `UPDATE outbox_deliveries SET next_attempt_at = ? + abs(random() % ?) WHERE id IN (
  SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_due
  WHERE state = 'pending' AND blocked = 0 AND handler = ? AND tenant = ? AND next_attempt_at > ? AND attempt > 0)`

// replan frees what a lane's clock has stranded, for when it went back, and for what an earlier boot has left behind. It says whether there
// may be more.
func (d *Dispatcher) replan(ctx context.Context, tx *Tx, handler HandlerName) (more bool, err error) {
	tenants, err := dueTenants(ctx, tx, handler)
	if err != nil {
		return false, err
	}
	now, policy := micros(tx.Now), d.config.Retry
	for _, tenant := range tenants {
		n, err := execCount(ctx, tx, replanFresh, now, string(handler), string(tenant), now, replanBatch)
		if err != nil {
			return false, fmt.Errorf("re-plan deliveries: %w", err)
		}
		more = more || n == replanBatch
		if _, err := execCount(ctx, tx, replanRetries, now, max(1, policy.Cap.Microseconds()), string(handler), string(tenant),
			micros(tx.Now.Add(policy.longest()))); err != nil {
			return false, fmt.Errorf("re-plan retries: %w", err)
		}
	}
	return more, nil
}

const selectLastFailure = `SELECT coalesce((SELECT started_at FROM outbox_attempts ORDER BY id DESC LIMIT 1), 0)`

const excuseOutages = `UPDATE outbox_deliveries SET unreachable_at = unreachable_at + ?1 WHERE id IN (
  SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND unreachable_at <= ?2)`

// excuse has the horizon of unreachable targets stand still while no process ran, as far as the latest failed attempt tells: a device that
// lay in a drawer, or starts with a clock of another year and no line, gives nothing up for it.
func excuse(ctx context.Context, tx *Tx) error {
	var last int64
	if err := tx.QueryRowContext(ctx, selectLastFailure).Scan(&last); err != nil {
		return fmt.Errorf("find latest failed attempt: %w", err)
	}
	off := micros(tx.Now) - last
	if last == 0 || off < longJump.Microseconds() {
		return nil
	}
	if _, err := execCount(ctx, tx, excuseOutages, off, last); err != nil {
		return fmt.Errorf("excuse the time without a process: %w", err)
	}
	return nil
}

// tellTime reads the clock for the whole turn, and moves what is stored with it when it has jumped, before anything is settled or claimed. The
// group's own time may be of before the jump.
func (t *turn) tellTime(ctx context.Context, tx *Tx, d *Dispatcher) error {
	now, jump := d.clock.read(d.config)
	if jump != 0 && len(t.shifts) == 0 {
		now, jump = now.Add(-jump), 0 // it came after the plan: this turn still lives in the time before
	}
	tx.Now, t.jump, t.unmended = now, jump, nil
	if jump != 0 {
		for _, l := range t.shifts {
			if err := d.shiftLane(ctx, tx, l.handler.Name, jump); err != nil {
				return err
			}
		}
	}
	if longAhead(jump) > 0 {
		// Retention looks seldom: what was settled while the clock was behind would be old at once.
		if _, err := execCount(ctx, tx, saveClock, micros(now), jumpPause.Microseconds()); err != nil {
			return fmt.Errorf("pause retention: %w", err)
		}
	}
	for _, l := range t.replans {
		more, err := d.replan(ctx, tx, l.handler.Name)
		if err != nil {
			return err
		}
		if more {
			t.unmended = append(t.unmended, l)
		}
	}
	ahead := d.clock.ahead + longAhead(jump)
	for _, outcomes := range [][]outcome{t.outcomes, t.overdue} {
		for i := range outcomes {
			outcomes[i].ahead = ahead - outcomes[i].attempt.ahead
		}
	}
	return nil
}

// toldTime takes the time that a committed turn was in into memory. The caller holds d.mu.
func (d *Dispatcher) toldTime(t *turn) {
	for _, l := range t.replans {
		l.replan = false
	}
	for _, l := range t.unmended {
		l.replan = true
	}
	if t.jump == 0 {
		return
	}
	d.clock.jumped(t.jump)
	if longAhead(t.jump) > 0 {
		d.leaps.Add(1)
	}
	d.config.Logger.Warn("the clock jumped", "by", t.jump)
	for _, l := range t.shifts {
		l.dirty, l.next, l.replan = true, time.Time{}, l.replan || t.jump < 0
	}
}
