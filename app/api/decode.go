package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/posthorn/posthorn/app/mediator"
)

// maxEntries bounds a list in an envelope before its own setting is looked at, so that a body of brackets cannot cost much memory.
const maxEntries = 10_000

// decode reads a request's envelope into a struct, strictly. Values of type json.RawMessage are taken as the bytes that stand there;
// what is inside them is theirs. The error is a *mediator.Refusal.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return &mediator.Refusal{Kind: mediator.Malformed, Code: "missing-body", Sentence: "The request has no body.", Hint: "Send a JSON object."}
	}
	if !utf8.Valid(body) {
		return &mediator.Refusal{Kind: mediator.Malformed, Code: "invalid-utf8", Sentence: "The body is not valid UTF-8.",
			Hint: "Encode text as UTF-8; other bytes go as payload_base64."}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return malformed(err)
	}
	var d decoder
	d.value(whole, reflect.ValueOf(into).Elem(), "")
	return d.refusal()
}

func malformed(err error) error {
	sentence := "The body is not JSON."
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		sentence = fmt.Sprintf("The body is not JSON: it goes wrong, or breaks off, at byte %d.", syntax.Offset)
	}
	return &mediator.Refusal{Kind: mediator.Malformed, Code: "malformed-json", Sentence: sentence, Hint: "Send one JSON object and nothing after it."}
}

// decoder collects what is wrong.
type decoder struct {
	code  string
	wrong mediator.Violations
}

func (d *decoder) fault(code, path, message string) {
	if d.code == "" {
		d.code = code
	}
	d.wrong.Add(path, message)
}

func (d *decoder) refusal() error {
	sentence := "The body is not as it should be."
	switch d.code {
	case "unknown-field":
		sentence = "The body has a field that is not known here."
	case "duplicate-field":
		sentence = "The body has a field twice."
	case "missing-field":
		sentence = "The body lacks a field."
	case "wrong-type":
		sentence = "The body has a value of the wrong type."
	}
	return d.wrong.Refusal(d.code, sentence, "/openapi.json describes the request.")
}

var rawType = reflect.TypeFor[json.RawMessage]()

// value reads one JSON value, which is known to be well formed, into v.
func (d *decoder) value(raw json.RawMessage, v reflect.Value, path string) {
	if v.Type() == rawType {
		v.SetBytes(append([]byte(nil), raw...))
		return
	}
	if v.Kind() == reflect.Pointer {
		if string(raw) == "null" {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(raw, v.Elem(), path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(raw, v, path)
	case reflect.Slice:
		d.array(raw, v, path)
	case reflect.String:
		d.text(raw, v, path)
	case reflect.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			d.fault("wrong-type", path, "must be true or false")
			return
		}
		v.SetBool(raw[0] == 't')
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			d.fault("wrong-type", path, "must be a whole number")
			return
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			d.fault("wrong-type", path, "must be a number")
			return
		}
		v.SetFloat(n)
	default:
		panic("api: no request has fields of type " + v.Type().String())
	}
}

// decodable panics for a body that value could not read: when a route is added, and not when somebody uses it.
func decodable(t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			decodable(t.Field(i).Type)
		}
	case reflect.Pointer, reflect.Slice:
		if t != rawType {
			decodable(t.Elem())
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
	default:
		panic("api: no request has fields of type " + t.String())
	}
}

func (d *decoder) text(raw json.RawMessage, v reflect.Value, path string) {
	if raw[0] != '"' {
		d.fault("wrong-type", path, "must be a string")
		return
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		d.fault("wrong-type", path, "must be a string")
		return
	}
	// Half a surrogate pair is no character; the standard library puts another in its place.
	if strings.ContainsRune(text, utf8.RuneError) && !bytes.ContainsRune(raw, utf8.RuneError) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		d.fault("wrong-type", path, "must be a string of whole characters")
		return
	}
	v.SetString(text)
}

func (d *decoder) array(raw json.RawMessage, v reflect.Value, path string) {
	if raw[0] != '[' {
		d.fault("wrong-type", path, "must be a list")
		return
	}
	list := json.NewDecoder(bytes.NewReader(raw))
	_, _ = list.Token() // the opening bracket
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; list.More(); i++ {
		if i == maxEntries {
			d.fault("wrong-type", path, "must have at most "+strconv.Itoa(maxEntries)+" entries")
			return
		}
		var entry json.RawMessage
		if err := list.Decode(&entry); err != nil {
			d.fault("wrong-type", path, "must be a list")
			return
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(entry, element, path+"/"+strconv.Itoa(i))
		v.Set(reflect.Append(v, element))
	}
}

func (d *decoder) object(raw json.RawMessage, v reflect.Value, path string) {
	if raw[0] != '{' {
		d.fault("wrong-type", path, "must be an object")
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	members := json.NewDecoder(bytes.NewReader(raw))
	_, _ = members.Token() // the opening brace
	for members.More() {
		token, err := members.Token()
		name, _ := token.(string)
		var member json.RawMessage
		if err == nil {
			err = members.Decode(&member)
		}
		if err != nil {
			d.fault("wrong-type", path, "must be an object")
			return
		}
		f, known := fields[name]
		switch {
		case !known:
			d.unknown(name, fields, path)
		case seen[name]:
			d.fault("duplicate-field", path+"/"+name, "is there twice")
		default:
			seen[name] = true
			d.value(member, v.FieldByIndex(f.index), path+"/"+name)
		}
	}
	for name, f := range fields {
		if f.required && !seen[name] {
			d.fault("missing-field", path+"/"+name, "is missing")
		}
	}
}

// harmlessName is a field name that may be repeated: it cannot forge a line or hide what it is.
var harmlessName = regexp.MustCompile(`^[A-Za-z0-9_$.-]{1,64}$`)

func (d *decoder) unknown(name string, fields map[string]field, path string) {
	for exact := range fields {
		if strings.EqualFold(exact, name) {
			d.fault("unknown-field", path+"/"+exact, "is spelt in another case; field names are exact")
			return
		}
	}
	if !harmlessName.MatchString(name) {
		d.fault("unknown-field", path, "has a field that is not known here")
		return
	}
	d.fault("unknown-field", path+"/"+name, "is not known here")
}

// field is a field of an envelope.
type field struct {
	index    []int
	required bool
}

// fieldsOf lists the fields of a struct by their JSON names, those of embedded structs among them. A field is required unless its tag
// says omitempty, which is also what the OpenAPI document says.
func fieldsOf(t reflect.Type) map[string]field {
	fields := map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fields[name] = field{index: f.Index, required: !strings.Contains(options, "omitempty")}
	}
	return fields
}
