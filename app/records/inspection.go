package records

import (
	"fmt"
	"slices"
	"strings"
)

// inspection collects what is wrong with one record.
type inspection struct {
	document *document
	problems Problems
}

// report adds a problem at the line of a field.
func (i *inspection) report(field, text, hint string) {
	i.problems = append(i.problems, Problem{File: i.document.file, Line: i.document.line(field), Text: text, Hint: hint})
}

// required reports a field that is empty.
func (i *inspection) required(field, value string) {
	if strings.TrimSpace(value) == "" {
		i.report(field, field+" is missing", "add "+field+": … to the front matter")
	}
}

// body reports a record that says nothing below its front matter.
func (i *inspection) body(text, what string) {
	if text == "" {
		i.report("", "the text below the front matter is missing", "write down "+what)
	}
}

// oneOf reports a value outside a closed list.
func oneOf[T ~string](i *inspection, field string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		i.report(field, fmt.Sprintf("%s is %.40q", field, value), fmt.Sprintf("it may be %s", joinOr(allowed)))
	}
}

// id reports a reference that could not be the id of any record; empty is for required to find.
func (i *inspection) id(field, id string) {
	if id == "" {
		return
	}
	if err := CheckID(id); err != nil {
		i.report(field, field+" "+err.Error(), "")
	}
}

// ref reads a field that names a record of any of the kinds, "settings/retry-cap".
func (i *inspection) ref(field, text string, kinds ...Kind) Ref {
	kind, id, _ := strings.Cut(text, "/")
	ref := Ref{Kind: Kind(kind), ID: id}
	if !slices.Contains(kinds, ref.Kind) || CheckID(id) != nil {
		i.report(field, fmt.Sprintf("%s %.80q names no record", field, text), fmt.Sprintf("write %s, a slash and an id", joinOr(kinds)))
		return Ref{}
	}
	return ref
}

func joinOr[T ~string](words []T) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = string(word)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
