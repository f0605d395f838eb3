package lending

import (
	"regexp"

	"github.com/posthorn/posthorn/app/mediator"
)

// The states of a copy.
const (
	onShelf = "shelf"
	onLoan  = "loan"
	held    = "held"
)

// The states of a reservation.
const (
	waiting   = "waiting"
	ready     = "ready"
	collected = "collected"
	expired   = "expired"
	cancelled = "cancelled"
)

var errSuspended = refuse("member-suspended", "The member is suspended.", "The standing is decided outside; it comes in as member-reinstated.")

// refuse is the answer to what a rule forbids. Its code is stable.
func refuse(code, sentence, hint string) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: code, Sentence: sentence, Hint: hint}
}

// missing is the answer to what names nobody or nothing.
func missing(code, sentence string) error {
	return &mediator.Refusal{Kind: mediator.Missing, Code: code, Sentence: sentence}
}

var (
	numberForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`)
	workForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	idForm     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

const (
	numberWant = "must be 1 to 32 letters, digits and hyphens"
	workWant   = "must be 1 to 63 lower-case letters, digits and hyphens"
	idWant     = "must be an id that Posthorn gave"
)

// form collects what is wrong with a request.
type form struct{ mediator.Violations }

func (f *form) number(path, text string) *form { return f.match(numberForm, path, text, numberWant) }
func (f *form) work(path, text string) *form   { return f.match(workForm, path, text, workWant) }
func (f *form) id(path, text string) *form     { return f.match(idForm, path, text, idWant) }

func (f *form) match(want *regexp.Regexp, path, text, message string) *form {
	if !want.MatchString(text) {
		f.Add(path, message)
	}
	return f
}

// text wants a line that a person reads.
func (f *form) text(path, text string, most int) *form {
	if !printable(text) || len([]rune(text)) > most || text == "" {
		f.Add(path, "must be a line of text, not too long")
	}
	return f
}

func (f *form) refusal() error {
	return f.Refusal("invalid", "The request is not as it should be.", "")
}
