package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDigits bounds a number that is checked against a schema: its digits, and its exponent. Decimal128, the widest number format in
// use, ends at an exponent of 6144; beyond that a few bytes would become megabytes of digits.
const maxDigits = 6144

// violations checks a payload; none means that it is sound.
func (v *Version) violations(payload []byte) []Violation {
	if v.compiled == nil {
		return nil
	}
	value, fault := readPayload(payload)
	if fault != nil {
		slices.Reverse(fault.inside)
		return []Violation{{Path: pointer(fault.inside), Keyword: "json", Want: fault.want}}
	}
	return validate(v.compiled, value)
}

// payloadFault is where a payload cannot even be checked.
type payloadFault struct {
	want   string
	inside []string // from the place outwards, so that only a fault pays for a path
}

func fault(format string, args ...any) *payloadFault {
	return &payloadFault{want: fmt.Sprintf(format, args...)}
}

func (f *payloadFault) in(name string) *payloadFault {
	f.inside = append(f.inside, name)
	return f
}

// readPayload reads JSON for checking. Numbers stay as they were written. A repeated name is refused: receivers differ in which of
// the two they read, so a check of either would promise nothing.
func readPayload(payload []byte) (any, *payloadFault) {
	if !utf8.Valid(payload) {
		return nil, fault("must be UTF-8")
	}
	// The standard library's check also bounds the depth, before readValue recurses.
	var whole json.RawMessage
	if err := json.Unmarshal(payload, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fault("must be JSON; it breaks off or goes wrong at byte %d", syntax.Offset)
		}
		return nil, fault("must be JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	return readValue(decoder)
}

// readValue reads one value of JSON that is known to be well formed.
func readValue(decoder *json.Decoder) (any, *payloadFault) {
	token, err := decoder.Token()
	if err != nil {
		return nil, fault("must be JSON")
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return readObject(decoder)
		}
		return readArray(decoder)
	case json.Number:
		if !modest(string(token)) {
			return nil, fault("must be a number of at most %d digits", maxDigits)
		}
	}
	return token, nil
}

func readObject(decoder *json.Decoder) (any, *payloadFault) {
	object := map[string]any{}
	for decoder.More() {
		token, _ := decoder.Token()
		name, _ := token.(string)
		if _, twice := object[name]; twice {
			return nil, fault("must be there once, but the name is repeated").in(name)
		}
		value, fault := readValue(decoder)
		if fault != nil {
			return nil, fault.in(name)
		}
		object[name] = value
	}
	_, _ = decoder.Token() // the closing brace: the text is known to be well formed
	return object, nil
}

func readArray(decoder *json.Decoder) (any, *payloadFault) {
	array := []any{}
	for decoder.More() {
		value, fault := readValue(decoder)
		if fault != nil {
			return nil, fault.in(strconv.Itoa(len(array)))
		}
		array = append(array, value)
	}
	_, _ = decoder.Token() // the closing bracket
	return array, nil
}

// modest says whether exact arithmetic on a number stays cheap.
func modest(number string) bool {
	digits, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if len(digits) > maxDigits {
		return false
	}
	if !found {
		return true
	}
	value, err := strconv.Atoi(exponent)
	return err == nil && value >= -maxDigits && value <= maxDigits
}
