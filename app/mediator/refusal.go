package mediator

import "strings"

// Kind sorts refusals by what is wrong with the request.
type Kind string

const (
	// Malformed: it cannot be read at all.
	Malformed Kind = "malformed"
	// Missing: what it names does not exist, or belongs to somebody else.
	Missing Kind = "missing"
	// Forbidden: the caller may see that it is there, but not this.
	Forbidden Kind = "forbidden"
	// Conflict: it does not fit what is stored.
	Conflict Kind = "conflict"
	// TooLarge: it is over a bound.
	TooLarge Kind = "too-large"
	// Unsupported: its media type is not served.
	Unsupported Kind = "unsupported"
	// Invalid: it can be read, and is wrong.
	Invalid Kind = "invalid"
)

// Refusal is the answer to a command or query that is not carried out for a reason that its sender can mend. Nothing has changed.
type Refusal struct {
	Kind Kind
	// Code is stable, for programs: version-conflict, unknown-field …
	Code string
	// Sentence says what is wrong, Hint what to do. Neither repeats a value that was received, unless it is known to be harmless.
	Sentence, Hint string
	// At names the places.
	At []Violation
}

// Violation is one place of a request that is wrong.
type Violation struct {
	// Path is a JSON Pointer into the request: /emits/0/payload.
	Path string
	// Message says what is wanted there.
	Message string
}

// Error is the sentence with its places.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.Sentence)
	for i, at := range r.At {
		if i == 3 {
			b.WriteString("; …")
			break
		}
		b.WriteString("; " + at.Path + " " + at.Message)
	}
	return b.String()
}

// Violations collects what is wrong with a request, so that it is told all at once.
type Violations []Violation

// Add notes a place.
func (v *Violations) Add(path, message string) {
	const most = 20
	if len(*v) < most {
		*v = append(*v, Violation{Path: path, Message: message})
	}
}

// Refusal is the answer to a request with violations; nil when there is none.
func (v Violations) Refusal(code, sentence, hint string) error {
	if len(v) == 0 {
		return nil
	}
	return &Refusal{Kind: Invalid, Code: code, Sentence: sentence, Hint: hint, At: v}
}
