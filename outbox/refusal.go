package outbox

import (
	"errors"
	"fmt"
	"regexp"
)

// Refusal is the schema's own answer to a message that it does not take. Nothing was staged.
type Refusal struct {
	// Code is stable: bad-id, duplicate-id, undeclared-type …
	Code string
	// Sentence says what is wrong and what to do.
	Sentence string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Sentence, r.Code) }

// Is makes errors.Is(err, ErrDuplicateID) and its like work by code.
func (r *Refusal) Is(target error) bool {
	t := (*Refusal)(nil)
	return errors.As(target, &t) && t.Code == r.Code
}

var (
	// ErrDuplicateID: a message with this id is staged already.
	ErrDuplicateID error = &Refusal{Code: "duplicate-id", Sentence: "a message with this id is staged already"}
	// ErrUndeclaredType: no record declares this type and version.
	ErrUndeclaredType error = &Refusal{Code: "undeclared-type", Sentence: "this type and schema_version are not declared"}
	// ErrNoHandler: a journey step or provider effect has no handler.
	ErrNoHandler error = &Refusal{Code: "no-handler", Sentence: "no handler is registered for this type"}
)

var refusalText = regexp.MustCompile(`posthorn\[([a-z-]+)\]: (.*?)(?: \(\d+\))?$`)

// refusalOf finds the schema's answer in the text of a driver's error; the codes are part of the contract, the drivers' wording is not.
func refusalOf(err error) error {
	if m := refusalText.FindStringSubmatch(err.Error()); m != nil {
		return &Refusal{Code: m[1], Sentence: m[2]}
	}
	return err
}
