package yamltree

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// converter converts the parser's nodes to Nodes.
type converter struct {
	Options
	lines []string // of the file
	level int
}

func (c *converter) convertFile(file *ast.File) (*Node, error) {
	var bodies []ast.Node
	for _, document := range file.Docs {
		if document.Body != nil {
			bodies = append(bodies, document.Body)
		}
	}
	if len(bodies) == 0 {
		return &Node{Kind: Null, At: Position{1, 1}}, nil
	}
	root, err := c.convert(bodies[0])
	if err == nil && len(bodies) > 1 {
		err = complaint(bodies[1].GetToken(), "a second YAML document begins here; "+c.IfSecond)
	}
	if err != nil {
		return nil, err
	}
	return root, nil
}

func (c *converter) convert(from ast.Node) (*Node, error) {
	token := from.GetToken()
	to := &Node{Text: token.Value, At: positionOf(token), form: token.Type}
	switch from := from.(type) {
	case *ast.NullNode:
		to.Kind = Null
	case *ast.StringNode:
		to.Kind, to.Text = Text, from.Value
	case *ast.LiteralNode:
		to.Kind, to.Text = Text, from.Value.Value
	case *ast.IntegerNode:
		to.Kind = Whole
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		to.Kind = Number
	case *ast.BoolNode:
		to.Kind = Bool
	case *ast.SequenceNode:
		return to, c.nested(token, func() error { return c.convertItems(to, from) })
	case *ast.MappingNode:
		return to, c.nested(token, func() error { return c.convertFields(to, from) })
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return nil, complaint(token, "anchors and aliases cannot be used in "+c.In+"; write the value out")
	case *ast.TagNode:
		return nil, complaint(token, "tags cannot be used in "+c.In+"; write the value without one")
	default:
		return nil, complaint(token, "this form of YAML cannot be used in "+c.In)
	}
	if line := to.At.Line - 1; line >= 0 && line < len(c.lines) {
		to.source = c.lines[line:]
	}
	return to, nil
}

func (c *converter) nested(at *token.Token, convert func() error) error {
	if c.MaxLevels > 0 && c.level == c.MaxLevels {
		return complaint(at, "values are nested too deeply for "+c.For)
	}
	c.level++
	defer func() { c.level-- }()
	return convert()
}

func (c *converter) convertItems(to *Node, from *ast.SequenceNode) error {
	to.Kind = List
	for _, value := range from.Values {
		item, err := c.convert(value)
		if err != nil {
			return err
		}
		to.Items = append(to.Items, item)
	}
	return nil
}

func (c *converter) convertFields(to *Node, from *ast.MappingNode) error {
	to.Kind = Mapping
	seen := map[string]bool{}
	for _, pair := range from.Values {
		key, err := c.convert(pair.Key)
		if err != nil {
			return err
		}
		if key.Kind != Text {
			return complaint(pair.Key.GetToken(), "a key must be a text; put it in quotes")
		}
		if seen[key.Text] { // the parser refuses the duplicates that it sees; readers rely on there being none
			return complaint(pair.Key.GetToken(), fmt.Sprintf("the key %.60q is there twice", key.Text))
		}
		seen[key.Text] = true
		value, err := c.convert(pair.Value)
		if err != nil {
			return err
		}
		if value.Kind == Null { // it often has no position of its own
			value.At = key.At
		}
		to.Fields = append(to.Fields, Field{key, value})
	}
	if len(to.Fields) > 0 && to.form != token.MappingStartType {
		to.At = to.Fields[0].Key.At
	}
	return nil
}
