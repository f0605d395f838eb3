//go:build mutants

package mutant

import (
	"os"
	"strings"
)

var chosen = os.Getenv("POSTHORN_MUTANT")

// The seeded bugs; see off.go for what each one does.
var (
	SynchronousNormal  = chosen == "synchronous-normal"
	SynchronousOff     = chosen == "synchronous-off"
	AnswerBeforeCommit = chosen == "answer-before-commit"
	DeferredBegin      = chosen == "deferred-begin"
	DoubtIgnored       = chosen == "doubt-ignored"
	AnyAnswerDelivers  = chosen == "any-answer-delivers"
	FenceIgnored       = chosen == "fence-ignored"
	NewIDOnRetry       = chosen == "new-id-on-retry"
	JSONReencoded      = chosen == "json-reencoded"
	AttemptCountedLate = chosen == "attempt-counted-late"
	CrashFree          = chosen == "crash-free"
	WallClockLease     = chosen == "wall-clock-lease"
	RetryAfterIgnored  = chosen == "retry-after-ignored"
	BackoffIgnored     = chosen == "backoff-ignored"
	BoundIgnored       = chosen == "bound-ignored"
	TenantsMixed       = chosen == "tenants-mixed"
	OrderSkipped       = chosen == "order-skipped"
	HashUnchecked      = chosen == "hash-unchecked"
	AuditOutside       = chosen == "audit-outside"
	DeadLettersPurged  = chosen == "dead-letters-purged"
	LockFree           = chosen == "lock-free"
	MarkUnread         = chosen == "mark-unread"
	FileUnwatched      = chosen == "file-unwatched"
)

var rewrites = map[string]*strings.Replacer{
	"fence-ignored": strings.NewReplacer("state = 'processing' AND lease_owner = ? AND fence = ? AND id", "? IS NOT NULL AND ? IS NOT NULL AND id"),
	"attempt-counted-late": strings.NewReplacer("attempt = attempt + 1, charged = charged + 1,", "",
		"SET state = 'pending', next_attempt_at = ?, blocked = 0, charged = ?, waited", "SET attempt = attempt + 1, state = 'pending', next_attempt_at = ?, blocked = 0, charged = ?, waited",
		"SET state = 'dispatched'", "SET attempt = attempt + 1, state = 'dispatched'",
		"SET state = 'dead-letter', completed_at = ?, charged = ?", "SET attempt = attempt + 1, state = 'dead-letter', completed_at = ?, charged = ?"),
	"tenants-mixed": strings.NewReplacer("JOIN outbox_messages m ON m.seq = d.seq",
		"JOIN outbox_messages m ON m.seq = (SELECT max(n.seq) FROM outbox_messages n WHERE n.id = (SELECT id FROM outbox_messages WHERE seq = d.seq))"),
	"deferred-begin": strings.NewReplacer("BEGIN IMMEDIATE", "BEGIN"),
}

// SQL is a statement as it is run.
func SQL(query string) string {
	if r := rewrites[chosen]; r != nil {
		return r.Replace(query)
	}
	return query
}
