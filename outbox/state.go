package outbox

import "time"

// StateName is how a state is written in the database, the API and the UI.
type StateName string

// The four states, by the names that everybody sees.
const (
	StatePending    StateName = "pending"
	StateProcessing StateName = "processing"
	StateDispatched StateName = "dispatched"
	StateDeadLetter StateName = "dead-letter"
)

// State is one of the four states of a delivery (P32): Pending, Processing, Dispatched or DeadLetter.
//
//	Pending ── claim ──▶ Processing ── accepted ──▶ Dispatched
//	   ▲                  │      │
//	   └── retry, expiry ─┘      └── permanent, or at a bound ──▶ DeadLetter
//	   ▲                                                             │
//	   └───────────────────── audited replay ────────────────────────┘
//
//sumtype:decl
type State interface {
	// Name is how everybody else calls the state.
	Name() StateName
	state()
}

// Pending waits for its next attempt.
type Pending struct {
	NextAttemptAt time.Time
	// Blocked: an earlier delivery of the same ordering key is unfinished.
	Blocked bool
}

// Processing is claimed: Owner may settle it under its fence until ExpiresAt.
type Processing struct {
	Owner     string
	ExpiresAt time.Time
}

// Dispatched was accepted by its target.
type Dispatched struct {
	CompletedAt time.Time
	// Suppressed: the handler had handled this message before.
	Suppressed bool
}

// DeadLetter is given up until somebody replays it.
type DeadLetter struct {
	CompletedAt time.Time
	Class       Class
}

// Name is pending.
func (Pending) Name() StateName { return StatePending }

// Name is processing.
func (Processing) Name() StateName { return StateProcessing }

// Name is dispatched.
func (Dispatched) Name() StateName { return StateDispatched }

// Name is dead-letter.
func (DeadLetter) Name() StateName { return StateDeadLetter }

func (Pending) state()    {}
func (Processing) state() {}
func (Dispatched) state() {}
func (DeadLetter) state() {}
