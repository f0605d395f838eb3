package outbox

import (
	"database/sql"
	"fmt"
	"time"
)

// DeliveryRecord is one message's delivery to one handler as it is stored, for whoever looks at it.
type DeliveryRecord struct {
	ID      DeliveryID
	Handler HandlerName
	State   State
	// Attempt counts the starts so far, Charged those that the retry bound applies to.
	Attempt, Charged int
	// Fence is the token of the latest claim; zero: none yet.
	Fence Fence
	// LastError and FailureClass tell of the latest attempt that failed; empty: none did.
	LastError    string
	FailureClass Class
	// Held: its lane is held. It says something of a pending delivery only.
	Held bool
	// ResendOf is the delivery that this one sends again; zero: none.
	ResendOf  DeliveryID
	CreatedAt time.Time
	// Attempts that failed and Replays are read for one message only, not for a list.
	Attempts []AttemptRecord
	Replays  []ReplayRecord
}

// AttemptRecord is an attempt that failed, with the evidence.
type AttemptRecord struct {
	Attempt   int
	Fence     Fence
	Charged   bool
	Class     Class
	Status    int // zero: none
	Error     string
	Excerpt   string
	StartedAt time.Time
	Duration  time.Duration
}

// ReplayRecord is an operator's return of a dead letter to pending.
type ReplayRecord struct {
	Actor, Reason string
	ReplayedAt    time.Time
	// Failure is the one that the replay answers.
	Failure string
}

// MessageRecord is a message with its deliveries.
type MessageRecord struct {
	Message
	// Hashed: PayloadSHA256 is stored already. Of a message staged by SQL it is filled before the first attempt.
	Hashed     bool
	Deliveries []DeliveryRecord
}

// State is the first that any delivery has of dead-letter, processing, pending, dispatched.
func (m MessageRecord) State() StateName {
	found := map[StateName]bool{}
	for _, d := range m.Deliveries {
		found[d.State.Name()] = true
	}
	for _, name := range []StateName{StateDeadLetter, StateProcessing, StatePending} {
		if found[name] {
			return name
		}
	}
	return StateDispatched
}

const deliveryColumns = `d.id, d.seq, d.handler, d.state, d.attempt, d.charged, d.next_attempt_at, d.blocked, d.lease_owner, d.lease_expires_at,
  d.fence, d.last_error, d.failure_class, d.suppressed, d.completed_at, d.resend_of, d.created_at,
  EXISTS (SELECT 1 FROM outbox_lanes l WHERE l.handler = d.handler)`

// deliveryRow is a row of outbox_deliveries. Nothing else in the package knows which columns belong to which state.
type deliveryRow struct {
	id, seq, attempt, charged, fence, createdAt int64
	handler, state                              string
	nextAttemptAt, leaseExpiresAt, completedAt  sql.NullInt64
	blocked, suppressed                         sql.NullBool
	held                                        bool
	leaseOwner, lastError, failureClass         sql.NullString
	resendOf                                    sql.NullInt64
}

func (r *deliveryRow) scan(rows *sql.Rows) error {
	return rows.Scan(&r.id, &r.seq, &r.handler, &r.state, &r.attempt, &r.charged, &r.nextAttemptAt, &r.blocked, &r.leaseOwner,
		&r.leaseExpiresAt, &r.fence, &r.lastError, &r.failureClass, &r.suppressed, &r.completedAt, &r.resendOf, &r.createdAt, &r.held)
}

// record turns the row into the delivery that it stands for, its state into the one of the four that it is in (P32).
func (r *deliveryRow) record() (DeliveryRecord, error) {
	d := DeliveryRecord{
		ID: DeliveryID(r.id), Handler: HandlerName(r.handler), Attempt: int(r.attempt), Charged: int(r.charged), Fence: Fence(r.fence),
		LastError: r.lastError.String, FailureClass: Class(r.failureClass.String), ResendOf: DeliveryID(r.resendOf.Int64),
		CreatedAt: fromMicros(r.createdAt), Held: r.held,
	}
	switch StateName(r.state) {
	case StatePending:
		d.State = Pending{NextAttemptAt: fromMicros(r.nextAttemptAt.Int64), Blocked: r.blocked.Bool}
	case StateProcessing:
		d.State = Processing{Owner: r.leaseOwner.String, ExpiresAt: fromMicros(r.leaseExpiresAt.Int64)}
	case StateDispatched:
		d.State = Dispatched{CompletedAt: fromMicros(r.completedAt.Int64), Suppressed: r.suppressed.Bool}
	case StateDeadLetter:
		d.State = DeadLetter{CompletedAt: fromMicros(r.completedAt.Int64), Class: d.FailureClass}
	default:
		return d, fmt.Errorf("read delivery %d: its state is none of the four", r.id)
	}
	return d, nil
}

// messageColumns leaves out headers and payload, which lie behind each other on pages of their own when the payload is large.
const messageColumns = `m.seq, m.id, m.kind, m.type, m.schema_version, m.tenant, m.occurred_at, m.deliver_at, m.ordering_key, m.content_type`

// messageRow is a row of outbox_messages without what only one message's own view needs.
type messageRow struct {
	Message
	occurredAt  int64
	deliverAt   sql.NullInt64
	orderingKey sql.NullString
}

func (r *messageRow) scan(row interface{ Scan(...any) error }, more ...any) error {
	into := []any{&r.Seq, &r.ID, &r.Kind, &r.Type, &r.SchemaVersion, &r.Tenant, &r.occurredAt, &r.deliverAt, &r.orderingKey, &r.ContentType}
	if err := row.Scan(append(into, more...)...); err != nil {
		return err
	}
	r.OccurredAt, r.OrderingKey = fromMicros(r.occurredAt), r.orderingKey.String
	if r.deliverAt.Valid {
		r.DeliverAt = fromMicros(r.deliverAt.Int64)
	}
	return nil
}
