package records

import (
	"errors"
	"fmt"
	"regexp"
)

// Kind is what a record declares, and the name of the folder that its files are in.
type Kind string

// The kinds of record.
const (
	KindUseCase          Kind = "use-cases"
	KindJourney          Kind = "journeys"
	KindIntegrationEvent Kind = "integration-events"
	KindNotification     Kind = "notifications"
	KindSetting          Kind = "settings"
	KindRunbook          Kind = "runbooks"
	KindReaction         Kind = "reactions"
	KindJob              Kind = "jobs"
	KindConvention       Kind = "conventions"
)

// Kinds lists every kind in the order in which records are listed.
func Kinds() []Kind {
	return []Kind{
		KindUseCase, KindJourney, KindIntegrationEvent, KindNotification, KindSetting, KindRunbook, KindReaction, KindJob,
		KindConvention,
	}
}

// blank makes an empty record of a kind, or nil for a kind that does not exist.
func (k Kind) blank() Record {
	switch k {
	case KindUseCase:
		return &UseCase{}
	case KindJourney:
		return &Journey{}
	case KindIntegrationEvent:
		return &IntegrationEvent{}
	case KindNotification:
		return &Notification{}
	case KindSetting:
		return &Setting{}
	case KindRunbook:
		return &Runbook{}
	case KindReaction:
		return &Reaction{}
	case KindJob:
		return &Job{}
	case KindConvention:
		return &Convention{}
	}
	return nil
}

// ErrBadID is what CheckID returns, wrapped, for a name that no record can have.
var ErrBadID = errors.New("a record's id is a lower-case letter, then at most 62 of a-z, 0-9 and -")

var idForm = regexp.MustCompile(`\A[a-z][a-z0-9-]{0,62}\z`)

// CheckID says whether a name can be the id of a record; the type of an integration event is the id of its record. Such a name is
// safe as a file name, in a URL and in a log line.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("%.80q: %w", id, ErrBadID)
	}
	return nil
}

// Ref names a record.
type Ref struct {
	Kind Kind
	ID   string
}

// String is the reference as files write it: "settings/retry-cap".
func (r Ref) String() string { return string(r.Kind) + "/" + r.ID }
