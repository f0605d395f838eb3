package records

import (
	"errors"
	"io/fs"
	"testing"
	"unicode/utf8"
)

// FuzzRecord reads any bytes as a record of any kind: it gets a record or problems that name the file, and never panics.
func FuzzRecord(f *testing.F) {
	err := fs.WalkDir(builtIn, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(builtIn, path)
		f.Add(string(text))
		return err
	})
	if err != nil {
		f.Fatalf("read built-in records: %v", err)
	}
	f.Add("---\ntitle: &a [*a]\n---\n")
	f.Add("---\n? [a]: b\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range Kinds() {
			record, err := readRecord(kind, "x", Overlay, "x.md", []byte(text))
			if err == nil {
				if record.About().Title == "" || record.About().Kind != kind {
					t.Errorf("%s: read without title or kind", kind)
				}
				record.references()
				continue
			}
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("%s: got %v, want Problems", kind, err)
			}
			for _, problem := range problems {
				if problem.File != "x.md" || problem.Text == "" || problem.Line < 0 {
					t.Errorf("%s: %+v", kind, problem)
				}
			}
		}
	})
}

// FuzzPayload checks any bytes against a schema: never a panic, and an error that can be logged.
func FuzzPayload(f *testing.F) {
	version := Version{Number: 1, Schema: map[string]any{
		"type": "object", "required": []any{"id"}, "additionalProperties": false,
		"properties": map[string]any{
			"id":    map[string]any{"type": "string", "pattern": "^[a-z]+$"},
			"total": map[string]any{"type": "integer", "maximum": 100, "multipleOf": 5},
			"lines": map[string]any{"type": "array", "uniqueItems": true, "items": map[string]any{"type": "number"}},
		},
	}}
	if err := version.compile("fuzzed"); err != nil {
		f.Fatalf("compile: %v", err)
	}
	event := IntegrationEvent{Head: Head{ID: "fuzzed"}, Versions: []Version{version}}
	f.Add([]byte(`{"id":"a","total":1e3,"lines":[1,1.0,-0]}`))
	f.Add([]byte(`{"id":"a","id":"b","\u0000":[[[]]]}`))
	f.Add([]byte("{\"\xff\":1e400}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		err := event.Validate(1, payload)
		if err == nil {
			return
		}
		text := err.Error()
		if !utf8.ValidString(text) || len(text) > 8192 {
			t.Errorf("an error of %d bytes, valid %v", len(text), utf8.ValidString(text))
		}
		for _, r := range text {
			if r < ' ' || r == 0x7f {
				t.Errorf("a control character in %q", text)
			}
		}
	})
}
