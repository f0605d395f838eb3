package records

import (
	"bytes"
	"fmt"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// table keeps to attributes, since a page allows no style inside its text.
var table = extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))

// HTML renders Markdown for a page. Raw HTML in it and addresses that run code are left out, and what names a record in code letters,
// `settings/retry-cap` or plainly `retry-cap`, becomes a link to it. link gives the address of a record.
func (s *Set) HTML(markdown string, link func(Ref) string) (string, error) {
	engine := goldmark.New(goldmark.WithExtensions(table),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(linker{set: s, link: link}, 100))))
	var out bytes.Buffer
	if err := engine.Convert([]byte(markdown), &out); err != nil {
		return "", fmt.Errorf("render Markdown: %w", err)
	}
	return out.String(), nil
}

// linker puts links around code spans that name records.
type linker struct {
	set  *Set
	link func(Ref) string
}

// Transform implements parser.ASTTransformer.
func (l linker) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	var spans []*ast.CodeSpan
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if _, inside := node.(*ast.Link); inside {
			return ast.WalkSkipChildren, nil
		}
		if span, ok := node.(*ast.CodeSpan); ok && entering {
			spans = append(spans, span)
		}
		return ast.WalkContinue, nil
	})
	for _, span := range spans {
		ref, ok := l.set.Named(codeText(span, reader.Source()))
		if !ok {
			continue
		}
		anchor := ast.NewLink()
		anchor.Destination = []byte(l.link(ref))
		parent := span.Parent()
		parent.ReplaceChild(parent, span, anchor)
		anchor.AppendChild(anchor, span)
	}
}

func codeText(span *ast.CodeSpan, source []byte) string {
	var b bytes.Buffer
	for child := span.FirstChild(); child != nil; child = child.NextSibling() {
		if part, ok := child.(*ast.Text); ok {
			b.Write(part.Segment.Value(source))
		}
	}
	return b.String()
}

// Named finds the record that a text names, by its reference or by its id alone; an id that several kinds have means none of them.
func (s *Set) Named(name string) (Ref, bool) {
	var found []Ref
	for _, kind := range Kinds() {
		ref := Ref{Kind: kind, ID: name}
		if _, ok := s.records[ref]; ok {
			found = append(found, ref)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	if len(found) == 0 {
		for ref := range s.records {
			if ref.String() == name {
				return ref, true
			}
		}
	}
	return Ref{}, false
}
