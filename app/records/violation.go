package records

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Violation is one place where a payload is not what its schema wants.
type Violation struct {
	Path    string // JSON Pointer, "" for the whole payload
	Keyword string // of the schema: "required", "type"; "json" where the payload is no JSON to begin with
	Want    string // what the schema wants there: "must be string"
}

// String is the violation in one line.
func (v Violation) String() string {
	if v.Path == "" {
		return "the payload " + v.Want
	}
	return v.Path + " " + v.Want
}

// PayloadError is a payload that violates the schema of its version. It holds paths and what the schema wants, and no value that
// was received, so that it can be shown and logged.
type PayloadError struct {
	Type       string
	Version    int
	Violations []Violation
}

// Error names the first places.
func (e *PayloadError) Error() string {
	const shown = 3
	var lines []string
	for i, violation := range e.Violations {
		if i == shown {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Violations)-shown))
			break
		}
		lines = append(lines, violation.String())
	}
	return fmt.Sprintf("payload of %s version %d: %s", e.Type, e.Version, strings.Join(lines, "; "))
}

// maxViolations is as many as help; a payload with a thousand wrong elements repeats itself.
const maxViolations = 20

func validate(schema *jsonschema.Schema, value any) []Violation {
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{{Keyword: "json", Want: "cannot be checked"}}
	}
	return violationsOf(invalid)
}

// violationsOf lists the leaves of the library's tree of causes.
func violationsOf(err *jsonschema.ValidationError) []Violation {
	var list []Violation
	var walk func(*jsonschema.ValidationError)
	walk = func(err *jsonschema.ValidationError) {
		if len(list) >= maxViolations {
			return
		}
		switch err.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not:
			// Their causes say why each alternative failed, which is not what is wrong.
		default:
			if len(err.Causes) > 0 {
				for _, cause := range err.Causes {
					walk(cause)
				}
				return
			}
		}
		list = append(list, describe(err.InstanceLocation, err.ErrorKind)...)
	}
	walk(err)
	return list[:min(len(list), maxViolations)]
}

// describe says what a keyword wants, from the schema's side only.
func describe(at []string, broken jsonschema.ErrorKind) []Violation {
	keyword := strings.Join(broken.KeywordPath(), "/")
	one := func(format string, args ...any) []Violation {
		return []Violation{{Path: pointer(at), Keyword: keyword, Want: fmt.Sprintf(format, args...)}}
	}
	each := func(names []string, want string) []Violation {
		var list []Violation
		for _, name := range names {
			list = append(list, Violation{Path: pointer(append(at[:len(at):len(at)], name)), Keyword: keyword, Want: want})
		}
		return list
	}
	switch broken := broken.(type) {
	case *kind.Type:
		return one("must be %s", joinOr(broken.Want))
	case *kind.Required:
		return each(broken.Missing, "is missing")
	case *kind.AdditionalProperties:
		return each(broken.Properties, "is not declared")
	case *kind.Enum:
		return one("must be one of the declared values")
	case *kind.Const:
		return one("must be the declared value")
	case *kind.Format:
		return one("must be a valid %s", broken.Want)
	case *kind.Pattern:
		return one("must match %s", broken.Want)
	case *kind.MinLength:
		return one("must have at least %d characters", broken.Want)
	case *kind.MaxLength:
		return one("must have at most %d characters", broken.Want)
	case *kind.MinItems:
		return one("must have at least %d elements", broken.Want)
	case *kind.MaxItems:
		return one("must have at most %d elements", broken.Want)
	case *kind.MinProperties:
		return one("must have at least %d members", broken.Want)
	case *kind.MaxProperties:
		return one("must have at most %d members", broken.Want)
	case *kind.UniqueItems:
		return one("must have no element twice")
	case *kind.Minimum:
		return one("must be at least %s", decimal(broken.Want))
	case *kind.Maximum:
		return one("must be at most %s", decimal(broken.Want))
	case *kind.ExclusiveMinimum:
		return one("must be more than %s", decimal(broken.Want))
	case *kind.ExclusiveMaximum:
		return one("must be less than %s", decimal(broken.Want))
	case *kind.MultipleOf:
		return one("must be a multiple of %s", decimal(broken.Want))
	case *kind.AnyOf, *kind.OneOf:
		return one("must match one of the declared alternatives")
	}
	return one("breaks the schema's rule %q", keyword)
}

// decimal writes an exact number without a fraction bar where it can.
func decimal(number *big.Rat) string {
	if places, exact := number.FloatPrec(); exact {
		return number.FloatString(places)
	}
	return number.String()
}

// pointer writes a JSON Pointer for people and logs: names come from the payload, so what does not print is escaped, and a long
// name or path is cut.
func pointer(path []string) string {
	const longest, deepest = 64, 16
	var b strings.Builder
	for depth, name := range path {
		if depth == deepest {
			b.WriteString("/…")
			break
		}
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		quoted := strconv.QuoteToGraphic(name)
		name = quoted[1 : len(quoted)-1]
		if runes := []rune(name); len(runes) > longest {
			name = string(runes[:longest]) + "…"
		}
		b.WriteString("/" + name)
	}
	return b.String()
}
