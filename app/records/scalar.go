package records

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Scalar is a value as its file writes it: 15s, 20%, 4096, without a type yet.
type Scalar string

// UnmarshalYAML takes text and numbers alike, byte for byte, so that a large number does not become a float on the way.
func (s *Scalar) UnmarshalYAML(node ast.Node) error {
	switch value := node.(type) {
	case *ast.StringNode:
		*s = Scalar(value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		*s = Scalar(node.GetToken().Value)
	default:
		return &yaml.SyntaxError{Message: "this is one value: a number, or text such as 15s or 16KiB", Token: node.GetToken()}
	}
	return nil
}

// Span is a time span in a record: 500ms, 15s, 1h30m, 3d.
type Span time.Duration

// UnmarshalYAML reads the span where it stands, so that an error has its line.
func (s *Span) UnmarshalYAML(node ast.Node) error {
	quantity, err := readQuantity(node, Duration)
	*s = Span(quantity.whole)
	return err
}

// Share is a part of a whole in a record: 0.99 or 99%.
type Share float64

// UnmarshalYAML reads the share where it stands, so that an error has its line.
func (s *Share) UnmarshalYAML(node ast.Node) error {
	quantity, err := readQuantity(node, Ratio)
	if err == nil && quantity.real > 1 {
		err = fmt.Errorf("%s is more than the whole", quantity)
		err = &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*s = Share(quantity.real)
	return err
}

func readQuantity(node ast.Node, unit Unit) (Quantity, error) {
	var text Scalar
	if err := text.UnmarshalYAML(node); err != nil {
		return Quantity{}, err
	}
	quantity, err := parseQuantity(text, unit)
	if err != nil {
		return Quantity{}, &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return quantity, nil
}
