package records

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFileSize is far above any record that a person writes; it bounds what a wrong file in the overlay can cost.
const maxFileSize = 256 << 10

// fence is the line that opens and closes the front matter.
const fence = "---"

// document is one record file taken apart.
type document struct {
	file  string
	front []byte    // the YAML between the fences
	tree  *ast.File // the same, parsed, to find the line of a field
	body  string
}

// readDocument takes a file apart without knowing its kind.
func readDocument(file string, text []byte) (*document, error) {
	fail := func(line int, text, hint string) (*document, error) {
		return nil, Problems{{File: file, Line: line, Text: text, Hint: hint}}
	}
	if len(text) > maxFileSize {
		return fail(0, fmt.Sprintf("a record has at most %d KiB", maxFileSize>>10), "")
	}
	if !utf8.Valid(text) {
		return fail(0, "a record is UTF-8 text", "save the file as UTF-8")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	opening, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || strings.TrimRight(string(opening), " \t") != fence {
		return fail(1, "a record begins with front matter", "begin the file with a line of ---, then its fields, then another line of ---")
	}
	front, body, found := cutFence(rest)
	if !found {
		return fail(1, "the front matter has no end", "close it with a line of ---")
	}
	// An alias may stand for a list of aliases, and so on: a short file would grow without bound. No record needs one.
	for _, tok := range lexer.Tokenize(string(front)) {
		if tok.Type == token.AnchorType || tok.Type == token.AliasType {
			return fail(tok.Position.Line+1, "a record uses no YAML anchors or aliases", "write the value out")
		}
	}
	doc := &document{file: file, front: front, body: strings.TrimSpace(string(body))}
	tree, err := parser.ParseBytes(front, 0)
	if err != nil {
		return nil, doc.yamlProblems(err)
	}
	doc.tree = tree
	return doc, nil
}

// cutFence splits at the first line that is only a fence.
func cutFence(text []byte) (front, body []byte, found bool) {
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], []byte("\n"))
		if strings.TrimRight(string(line), " \t") == fence {
			return text[:at], text[min(at+len(line)+1, len(text)):], true
		}
		at += len(line) + 1
	}
	return nil, nil, false
}

// decode fills a record from the front matter: every field known, none twice.
func (d *document) decode(record Record) error {
	err := yaml.NewDecoder(bytes.NewReader(d.front), yaml.Strict()).Decode(record)
	if err != nil {
		return d.yamlProblems(err)
	}
	return nil
}

// yamlProblems turns an error of the YAML library into a problem with the line in the file, one below that of the front matter.
func (d *document) yamlProblems(err error) Problems {
	problem := Problem{File: d.file, Text: err.Error()}
	var located yaml.Error
	if errors.As(err, &located) {
		problem.Text = located.GetMessage()
		if tok := located.GetToken(); tok != nil && tok.Position != nil {
			problem.Line = tok.Position.Line + 1
		}
	}
	problem.Text = "front matter: " + firstLine(problem.Text)
	return Problems{problem}
}

// line finds where a field stands, "versions[0].schema"; for a field that is missing the nearest one around it, at last the fence.
func (d *document) line(field string) int {
	for field != "" {
		if path, err := yaml.PathString("$." + field); err == nil {
			if node, err := path.FilterFile(d.tree); err == nil && node != nil {
				return node.GetToken().Position.Line + 1
			}
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 1
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
