//go:build !mutants

package mutant

// The seeded bugs, all of them off.
const (
	SynchronousNormal  = false // a COMMIT does not wait for the disk
	SynchronousOff     = false // nothing ever waits for the disk
	AnswerBeforeCommit = false // commands are acknowledged before their COMMIT
	DeferredBegin      = false // the writer reads first, and takes the write lock when it first writes
	DoubtIgnored       = false // after a COMMIT that failed the writer goes on as after a refusal
	AnyAnswerDelivers  = false // an attempt is settled as dispatched whatever the target answers
	FenceIgnored       = false // an attempt is settled whether or not it still has its lease
	NewIDOnRetry       = false // each attempt has a webhook-id of its own
	JSONReencoded      = false // payloads are read and written anew before they are sent
	AttemptCountedLate = false // an attempt is counted when it is settled, not when it is claimed
	CrashFree          = false // a crash costs the deliveries that it interrupted nothing
	WallClockLease     = false // leases run out by the wall clock
	RetryAfterIgnored  = false // a target's Retry-After is not honoured
	BackoffIgnored     = false // failed attempts are repeated at once
	BoundIgnored       = false // failed attempts are repeated for ever
	TenantsMixed       = false // a claim finds its message by its id alone, which another tenant may have given too
	OrderSkipped       = false // a delivery that waits for its retry lets the next of its ordering key pass
	HashUnchecked      = false // payloads are not compared with their hash before they are sent
	AuditOutside       = false // the audit rows of a replay have a transaction of their own
	DeadLettersPurged  = false // retention takes dead letters as it takes dispatched messages
	LockFree           = false // the data folder is not locked
	MarkUnread         = false // a database that has lost its latest commits is gone on with
	FileUnwatched      = false // nobody looks whether the database is still the file that was opened
)

// SQL is a statement as it is run.
func SQL(query string) string { return query }
