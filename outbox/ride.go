package outbox

import "context"

// ride is the turn of an idle dispatcher in somebody else's group: the commit that stages a message also claims it, so that its handler starts
// after one commit and not after two. It never waits, and never makes a commit: what it misses, the next turn finds.
//
// It rides in a guest's file as well: it takes the write lock once where there were two times, and holds it no longer than the turn would.
type ride struct {
	d    *Dispatcher
	seat *waiting
	turn *turn // nil: none was planned; else d.turning is held from the plan to the end
}

// hitch begins a ride.
func (d *Dispatcher) hitch() *ride {
	r := &ride{d: d}
	r.seat = d.config.Writer.hitch(r.run)
	return r
}

// run is the ride's command. When the writer runs it again, the turn is the one that was planned.
func (r *ride) run(ctx context.Context, tx *Tx) error {
	if r.turn == nil && !r.plan() {
		return nil
	}
	return r.turn.run(r.d)(ctx, tx)
}

// plan takes what there is to do, the group's own arrivals included.
func (r *ride) plan() bool {
	d := r.d
	d.Wake() // the loop wakes while the group is committed, and waits for its end
	if !d.turning.TryLock() {
		return false // whoever holds it may be waiting for the writer
	}
	defer func() {
		if r.turn == nil {
			d.turning.Unlock()
		}
	}()
	r.turn = d.plan()
	return r.turn != nil
}

// end ends the ride, once it is certain how.
func (r *ride) end() {
	d := r.d
	defer func() {
		if r.turn != nil {
			d.turning.Unlock()
		}
	}()
	if taken, err := d.config.Writer.alight(r.seat); taken && r.turn != nil {
		d.end(r.turn, err)
		d.tell()
	}
}
