package records

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Version is one shape of an event's payload. A version that was ever staged does not change; a new shape is a new version.
type Version struct {
	Number int `yaml:"version"`
	// Schema is a JSON Schema, draft 2020-12 unless it says otherwise; nil leaves the payload unchecked.
	Schema map[string]any `yaml:"schema"`
	// Fields classifies the payload. A key is a path without its first slash, "recipient/name", with * for every element of a list or
	// every member of an object; a class covers what lies below its path.
	Fields map[string]Class `yaml:"fields"`

	compiled *jsonschema.Schema
}

// Class says who may see a field.
type Class string

// The classes, from open to closed.
const (
	Public   Class = "public"
	Internal Class = "internal"
	Personal Class = "personal"
	Secret   Class = "secret"
)

// Classes lists the classes from open to closed.
func Classes() []Class { return []Class{Public, Internal, Personal, Secret} }

// Class classifies a field by its path from the root of the payload: the longest entry that covers it decides, among equally long
// ones that with fewer *, then the more closed. What no entry covers is personal: a field that nobody thought of is masked rather
// than shown.
func (v *Version) Class(path ...string) Class {
	best, depth, exact := Personal, -1, -1
	for pattern, class := range v.Fields {
		segments := strings.Split(pattern, "/")
		literal, ok := covers(segments, path)
		if !ok {
			continue
		}
		closer := cmp.Or(cmp.Compare(len(segments), depth), cmp.Compare(literal, exact),
			cmp.Compare(slices.Index(Classes(), class), slices.Index(Classes(), best)))
		if closer > 0 {
			best, depth, exact = class, len(segments), literal
		}
	}
	return best
}

// covers says whether a pattern is a prefix of a path, and how many of its segments are literal.
func covers(pattern, path []string) (literal int, ok bool) {
	if len(pattern) > len(path) {
		return 0, false
	}
	for i, segment := range pattern {
		switch segment {
		case path[i]:
			literal++
		case "*":
		default:
			return 0, false
		}
	}
	return literal, true
}

func (v *Version) inspect(i *inspection, field, eventType string) {
	if v.Number < 1 {
		i.report(field+".version", "version is a whole number from 1", "")
	}
	if len(v.Fields) == 0 {
		i.report(field+".fields", "fields is missing", `classify each field of the payload, or all of them with "*"`)
	}
	for _, path := range slices.Sorted(maps.Keys(v.Fields)) {
		oneOf(i, field+".fields", v.Fields[path], Classes()...)
		if path == "" || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
			i.report(field+".fields", fmt.Sprintf("%.80q is no path of a field", path), "write names with a slash between them, such as recipient/name")
		}
	}
	if v.Schema == nil {
		return
	}
	if err := v.compile(eventType); err != nil {
		i.report(field+".schema", "schema: "+err.Error(), "it is a JSON Schema, draft 2020-12, complete in itself")
		return
	}
	for _, path := range propertyPaths(v.Schema, nil) {
		if !v.classified(path) {
			i.report(field+".fields", fmt.Sprintf("field %q has no classification", strings.Join(path, "/")),
				"add it to fields: public, internal, personal or secret")
		}
	}
}

func (v *Version) classified(path []string) bool {
	for pattern := range v.Fields {
		if _, ok := covers(strings.Split(pattern, "/"), path); ok {
			return true
		}
	}
	return false
}

// propertyPaths lists the properties that a schema names in place; those behind a $ref or a condition are for the reader of the
// record to classify.
func propertyPaths(schema map[string]any, at []string) [][]string {
	var paths [][]string
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		path := append(slices.Clone(at), name)
		inner, _ := properties[name].(map[string]any)
		if below := propertyPaths(inner, path); len(below) > 0 {
			paths = append(paths, below...)
		} else {
			paths = append(paths, path)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		paths = append(paths, propertyPaths(items, append(slices.Clone(at), "*"))...)
	}
	return paths
}

// SchemaJSON is the schema as JSON, or nil.
func (v *Version) SchemaJSON() ([]byte, error) {
	if v.Schema == nil {
		return nil, nil
	}
	text, err := json.Marshal(v.Schema)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return text, nil
}

// compile reads the schema. Formats are enforced, since whoever writes "format: date-time" means it.
func (v *Version) compile(eventType string) error {
	text, err := v.SchemaJSON()
	if err != nil {
		return err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	location := fmt.Sprintf("posthorn:/integration-events/%s/%d", eventType, v.Number)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(location, schema); err != nil {
		return schemaProblem(err)
	}
	v.compiled, err = compiler.Compile(location)
	return schemaProblem(err)
}

// noLoader keeps a schema from reading files or the network.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema refers only to itself")
}

// schemaProblem puts the library's tree of causes into one line.
func schemaProblem(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var inner *jsonschema.ValidationError
		if errors.As(invalid.Err, &inner) {
			if list := violationsOf(inner); len(list) > 0 {
				return errors.New(list[0].String())
			}
		}
	}
	if err != nil {
		return errors.New(firstLine(err.Error()))
	}
	return nil
}
