package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Closed says that a class is for those who operate the product, not for everybody who may look on.
func (c Class) Closed() bool { return c != Public && c != Internal }

// mask stands in the place of a value that its reader may not see.
func mask(class Class) string { return "[" + string(class) + "]" }

// Undeclared is a version that nobody classified: everything in it is personal, as every field is that no entry covers.
func Undeclared() *Version { return &Version{} }

// whole is the class of a payload that has no fields, or none that can be told apart: the most closed class that
// it has anywhere, or that of "*", or personal, as what no entry covers.
func (v *Version) whole() Class {
	most := Public
	for _, class := range v.Fields {
		if slices.Index(Classes(), class) > slices.Index(Classes(), most) {
			most = class
		}
	}
	if most.Closed() {
		return most
	}
	if class, ok := v.Fields["*"]; ok {
		return class
	}
	return Personal
}

// Mask puts the name of its class in the place of every closed field of a payload, and returns the paths at which it did, as JSON
// pointers. Everything else, numbers too, stays as it was written. A payload that is no JSON comes back as nil when it is closed as a
// whole. Nothing masked means that the payload may be shown as it is.
func (v *Version) Mask(payload []byte, isJSON bool) (shown []byte, masked []string) {
	if !isJSON || !json.Valid(payload) {
		if v.whole().Closed() {
			return nil, []string{""}
		}
		return payload, nil
	}
	m := masker{version: v, decoder: json.NewDecoder(bytes.NewReader(payload))}
	m.decoder.UseNumber()
	if err := m.value(nil); err != nil {
		return []byte(strconv.Quote(mask(Personal))), []string{""}
	}
	if len(m.masked) == 0 {
		return payload, nil
	}
	return m.out.Bytes(), m.masked
}

// masker copies JSON, value by value.
type masker struct {
	version *Version
	decoder *json.Decoder
	out     bytes.Buffer
	masked  []string
}

func (m *masker) value(path []string) error {
	token, err := m.decoder.Token()
	if err != nil {
		return err
	}
	class := m.version.whole()
	if len(path) > 0 {
		class = m.version.Class(path...)
	}
	delim, nested := token.(json.Delim)
	if nested && (!class.Closed() || m.version.deeper(path) || len(path) == 0 && len(m.version.Fields) > 0) {
		return m.container(delim, path)
	}
	if nested {
		if err := m.skip(); err != nil {
			return err
		}
	}
	if class.Closed() {
		m.masked = append(m.masked, pointer(path))
		return m.write(mask(class))
	}
	return m.write(token)
}

// container copies an object or an array that has something to show.
func (m *masker) container(open json.Delim, path []string) error {
	m.out.WriteString(open.String())
	for at := 0; m.decoder.More(); at++ {
		if at > 0 {
			m.out.WriteByte(',')
		}
		name := strconv.Itoa(at)
		if open == '{' {
			token, err := m.decoder.Token()
			if err != nil {
				return err
			}
			var ok bool
			if name, ok = token.(string); !ok {
				return errors.New("a name is no string")
			}
			if err := m.write(name); err != nil {
				return err
			}
			m.out.WriteByte(':')
		}
		if err := m.value(append(slices.Clone(path), name)); err != nil {
			return err
		}
	}
	end, err := m.decoder.Token()
	if err != nil {
		return err
	}
	fmt.Fprint(&m.out, end)
	return nil
}

// skip passes over the rest of a container whose opening was read.
func (m *masker) skip() error {
	for depth := 1; depth > 0; {
		token, err := m.decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// write copies a scalar. A number stays as it was written.
func (m *masker) write(value any) error {
	if number, ok := value.(json.Number); ok {
		m.out.WriteString(number.String())
		return nil
	}
	encoder := json.NewEncoder(&m.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	m.out.Truncate(m.out.Len() - 1) // the line's end
	return nil
}

// deeper says that an open entry lies below a path, so that a part of what is there can be shown.
func (v *Version) deeper(path []string) bool {
	for pattern, class := range v.Fields {
		segments := strings.Split(pattern, "/")
		if class.Closed() || len(segments) <= len(path) {
			continue
		}
		if _, ok := covers(segments[:len(path)], path); ok {
			return true
		}
	}
	return false
}
