package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Upcaster makes of a payload of one schema version the payload of the next. It must give the same bytes for the same message each time,
// and must not change the message.
type Upcaster func(m Message) ([]byte, error)

// Readers says what a program's own handlers can read (P29): each type of message in the one version that its handlers know, and how
// older versions become that one, a step at a time. Fill it before the first handler that has it is registered; it is only read
// afterwards.
//
//	readers := outbox.NewReaders()
//	readers.Read(outbox.IntegrationEvent, "loan-borrowed", 2)
//	readers.Upcast("loan-borrowed", 1, func(m outbox.Message) ([]byte, error) { … })
//
// A handler with Readers is given no message that they cannot read: such a delivery stays pending, with the reason in its last error, for
// a program that can.
type Readers struct {
	reads map[readKey]int
	lifts map[TypeVersion]Upcaster
}

type readKey struct {
	kind Kind
	name string
}

// NewReaders returns readers that can read nothing yet.
func NewReaders() *Readers {
	return &Readers{reads: map[readKey]int{}, lifts: map[TypeVersion]Upcaster{}}
}

// Read declares the version in which the handlers know a type.
func (r *Readers) Read(kind Kind, name string, version int) {
	r.reads[readKey{kind, name}] = version
}

// Upcast declares how version from of an integration event becomes the next.
func (r *Readers) Upcast(name string, from int, lift Upcaster) {
	r.lifts[TypeVersion{Kind: IntegrationEvent, Type: name, SchemaVersion: from}] = lift
}

// CanRead reports whether a version is the one that the handlers know, or upcasters lead to it.
func (r *Readers) CanRead(t TypeVersion) bool {
	t = t.filled()
	known, ok := r.reads[readKey{t.Kind, t.Type}]
	if !ok || t.SchemaVersion > known {
		return false
	}
	for ; t.SchemaVersion < known; t.SchemaVersion++ {
		if r.lifts[t] == nil {
			return false
		}
	}
	return true
}

// Versions lists what can be read, in order.
func (r *Readers) Versions() []TypeVersion {
	var all []TypeVersion
	for key, known := range r.reads {
		for t := (TypeVersion{Kind: key.kind, Type: key.name, SchemaVersion: known}); t.SchemaVersion > 0 && r.CanRead(t); t.SchemaVersion-- {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b TypeVersion) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type), cmp.Compare(a.SchemaVersion, b.SchemaVersion))
	})
	return all
}

// Declare is what a program with these readers may say of itself (see DeclareReads): of the declared versions those that no handler of its
// own has to read, since destinations take the bytes as they are, or that its handlers can read; and all else that they read.
func (r *Readers) Declare(declared []TypeVersion) []TypeVersion {
	if r == nil {
		return declared
	}
	var all []TypeVersion
	for _, t := range declared {
		t = t.filled()
		if _, own := r.reads[readKey{t.Kind, t.Type}]; !own {
			all = append(all, t)
		}
	}
	return append(all, r.Versions()...)
}

// Lift returns the message in the version that the handlers know. Its id, and the hash of what was staged, stay.
func (r *Readers) Lift(m Message) (Message, error) {
	known := r.reads[readKey{m.Kind, m.Type}]
	for m.SchemaVersion < known {
		lift := r.lifts[TypeVersion{Kind: m.Kind, Type: m.Type, SchemaVersion: m.SchemaVersion}]
		if lift == nil {
			return m, fmt.Errorf("lift %s version %d: %w", m.Type, m.SchemaVersion, errUnreadable)
		}
		payload, err := lift(m)
		if err != nil {
			return m, fmt.Errorf("lift %s version %d: %w", m.Type, m.SchemaVersion, err)
		}
		m.Payload = payload
		m.SchemaVersion++
	}
	return m, nil
}

func (t TypeVersion) filled() TypeVersion {
	if t.Kind == "" {
		t.Kind = IntegrationEvent
	}
	return t
}

// Unreadable is the class of a delivery that waits for a program that can read its message. No attempt was made, and none is charged.
const Unreadable Class = "unreadable"

var errUnreadable = errors.New("no upcaster leads to the version that the handler knows")

// unreadableWait is when an unreadable delivery is looked at again, so that it costs nothing meanwhile. A newer program looks at once.
const unreadableWait = 10 * time.Minute

// A delivery is set aside under a fence of its own, as every change of a delivery is.
const setAside = `UPDATE outbox_deliveries SET next_attempt_at = ?, last_error = ?, failure_class = 'unreadable', fence = ?, interrupted = 0
WHERE state = 'pending' AND id = ?`

const recallUnreadable = `UPDATE outbox_deliveries SET next_attempt_at = min(next_attempt_at, ?)
WHERE state = 'pending' AND failure_class = 'unreadable' AND id IN (SELECT id FROM outbox_deliveries INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND handler = ?)`

// leaveUnreadable takes what the lane's handler cannot read out of what was found, before it is leased.
func leaveUnreadable(ctx context.Context, tx *Tx, found *due, l *lane) error {
	readers := l.handler.Readers
	if readers == nil {
		return nil
	}
	kept := found.deliveries[:0]
	for _, d := range found.deliveries {
		m := d.Message
		if readers.CanRead(TypeVersion{Kind: m.Kind, Type: m.Type, SchemaVersion: m.SchemaVersion}) {
			kept = append(kept, d)
			continue
		}
		stmt, err := tx.Stmt(ctx, raiseFence)
		if err != nil {
			return err
		}
		var fence int64
		if err := stmt.QueryRowContext(ctx).Scan(&fence); err != nil {
			return fmt.Errorf("raise fence: %w", err)
		}
		why := fmt.Sprintf("this program cannot read %s %s version %d; it waits for one that can", m.Kind, m.Type, m.SchemaVersion)
		if _, err := execCount(ctx, tx, setAside, micros(tx.Now.Add(unreadableWait)), why, fence, int64(d.ID)); err != nil {
			return fmt.Errorf("set unreadable delivery %d aside: %w", d.ID, err)
		}
	}
	found.deliveries = kept
	return nil
}

// recallAside makes what an earlier program could not read due at once.
func recallAside(ctx context.Context, tx *Tx, h Handler) error {
	if h.Readers == nil {
		return nil
	}
	if _, err := execCount(ctx, tx, recallUnreadable, micros(tx.Now), string(h.Name)); err != nil {
		return fmt.Errorf("recall what could not be read: %w", err)
	}
	return nil
}
