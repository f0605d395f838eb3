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
	doc := &document{file: file, front: front, body: strings.TrimSpace(string(body))}
	if err := guard(doc.parse); err != nil {
		return nil, doc.yamlProblems(err)
	}
	return doc, nil
}

// parse reads the front matter into its tree.
func (d *document) parse() error {
	tokens := lexer.Tokenize(string(d.front))
	if err := refuseCostly(tokens); err != nil { // as CheckYAML, whose tokens are used again here
		return err
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		return err
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return errors.New("it is empty; write its fields between the two lines of ---")
	}
	if len(tree.Docs) > 1 {
		start := tree.Docs[1].Start
		if body := tree.Docs[1].Body; start == nil && body != nil {
			start = body.GetToken()
		}
		return &yaml.SyntaxError{Message: "it is one document, without lines of ... or --- inside", Token: start}
	}
	d.tree = tree
	return nil
}

// maxNesting is deeper than any record; what a parser does with nesting is not linear.
const maxNesting = 64

// CheckYAML refuses YAML that costs much more than its length says: anchors, aliases and deep nesting.
func CheckYAML(text []byte) error {
	return guard(func() error { return refuseCostly(lexer.Tokenize(string(text))) })
}

// refuseCostly keeps a short file from costing much: an alias may stand for a list of aliases, and so on, and nesting without end
// exhausts the stack.
func refuseCostly(tokens token.Tokens) error {
	open, line, onLine := 0, 0, 0
	for _, tok := range tokens {
		if tok.Position.Line != line {
			line, onLine = tok.Position.Line, 0
		}
		switch tok.Type {
		case token.AnchorType, token.AliasType:
			return &yaml.SyntaxError{Message: "anchors and aliases are not taken; write the value out", Token: tok}
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType:
			onLine++
		default: // the rest nests nothing
		}
		if open > maxNesting || onLine > maxNesting {
			return &yaml.SyntaxError{Message: "this is nested too deeply", Token: tok}
		}
	}
	return nil
}

// guard turns a panic of the YAML library, which some malformed texts cause, into an error: a file that a person mistyped is told of
// like any other.
func guard(read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is no YAML that can be read")
		}
	}()
	return read()
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
	err := guard(func() error { return yaml.NodeToValue(d.tree.Docs[0].Body, record, yaml.Strict()) })
	if err != nil {
		return d.yamlProblems(err)
	}
	return nil
}

// yamlProblems turns an error of the YAML library into a problem with the line in the file, one below that of the front matter.
func (d *document) yamlProblems(err error) Problems {
	problem := Problem{File: d.file}
	var located yaml.Error
	if !errors.As(err, &located) {
		problem.Text = err.Error()
	} else {
		problem.Text = located.GetMessage() // its Error prints the source around the place, at great cost
		if tok := located.GetToken(); tok != nil && tok.Position != nil {
			problem.Line = tok.Position.Line + 1
		}
	}
	text := firstLine(problem.Text)
	if key, _, twice := strings.Cut(text, " already defined at "); twice {
		text = key + " is there twice" // the position that follows counts from the front matter
	}
	problem.Text = "front matter: " + text
	return Problems{problem}
}

// line finds where a field stands, "versions[0].schema"; for a field that is missing the nearest one around it, at last the fence.
func (d *document) line(field string) int {
	for field != "" {
		line := 0
		err := guard(func() error {
			path, err := yaml.PathString("$." + field)
			if err != nil {
				return err
			}
			node, err := path.FilterFile(d.tree)
			if err != nil {
				return err
			}
			line = node.GetToken().Position.Line + 1
			return nil
		})
		if err == nil {
			return line
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 1
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
