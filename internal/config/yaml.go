package config

import (
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

// nodeKind is what a YAML value is, or untyped for text from elsewhere.
type nodeKind int

const (
	untyped nodeKind = iota
	nullNode
	textNode
	wholeNode
	numberNode
	boolNode
	listNode
	mappingNode
)

// node is a value of the file and its place, from 1, columns in characters.
type node struct {
	kind         nodeKind
	text         string // of a scalar, as it is written; of a text, what it says
	line, column int
	items        []*node // of a list
	fields       []field // of a mapping, in order
}

// field is one key of a mapping with its value.
type field struct{ key, value *node }

// syntaxError is a complaint about the file's form.
type syntaxError struct {
	line, column int
	message      string
}

func (e *syntaxError) Error() string { return e.message }

const (
	maxFileBytes = 64 << 10
	// maxNesting bounds brackets within brackets, and dashes on one line: the parser recurses, and takes
	// time that grows with the square of the depth.
	maxNesting = 16
)

// parseYAML reads the settings file: one mapping, with plain scalars, lists and mappings below it. It
// returns an empty mapping for an empty file, and a *syntaxError for anything else.
func parseYAML(data []byte) (*node, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(text)
	if err := checkNesting(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, fromParser(err)
	}
	var bodies []ast.Node
	for _, document := range file.Docs {
		if document.Body != nil {
			bodies = append(bodies, document.Body)
		}
	}
	if len(bodies) == 0 {
		return &node{kind: mappingNode, line: 1, column: 1}, nil
	}
	root, err := convert(bodies[0])
	switch {
	case err != nil:
		return nil, err
	case len(bodies) > 1:
		return nil, complain(bodies[1].GetToken(), "a second YAML document begins here; write all settings in one")
	case root.kind == nullNode:
		root.kind = mappingNode
	case root.kind != mappingNode:
		return nil, complain(bodies[0].GetToken(), "the file must be a mapping of settings, such as listen: 127.0.0.1:8787")
	}
	return root, nil
}

// checkCharacters refuses what YAML files cannot hold: bytes that are not UTF-8, and control characters.
func checkCharacters(text string) error {
	line, column := 1, 1
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return &syntaxError{line, column, "the file is not UTF-8 text"}
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\x7f' {
			return &syntaxError{line, column, fmt.Sprintf("the control character U+%04X cannot stand here", r)}
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return nil
}

func checkNesting(tokens token.Tokens) error {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			dashes++
		}
		if brackets > maxNesting || dashes > maxNesting {
			return complain(t, "values are nested too deeply for settings")
		}
	}
	return nil
}

// fromParser takes the parser's sentence and place, without the excerpt of the file that it adds: that
// could hold what should not be shown.
func fromParser(err error) error {
	var told yaml.Error
	if !errors.As(err, &told) {
		return &syntaxError{1, 1, "not valid YAML"}
	}
	return complain(told.GetToken(), "not valid YAML: "+strings.ReplaceAll(told.GetMessage(), "\t", `\t`))
}

func complain(at *token.Token, message string) error {
	if at == nil || at.Position == nil {
		return &syntaxError{1, 1, message}
	}
	return &syntaxError{at.Position.Line, at.Position.Column, message}
}

// convert makes a node of the parser's.
func convert(from ast.Node) (*node, error) {
	at := from.GetToken()
	to := &node{text: at.Value, line: at.Position.Line, column: at.Position.Column}
	switch from := from.(type) {
	case *ast.NullNode:
		to.kind = nullNode
	case *ast.StringNode:
		to.kind, to.text = textNode, from.Value
	case *ast.LiteralNode:
		to.kind, to.text = textNode, from.Value.Value
	case *ast.IntegerNode:
		to.kind = wholeNode
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		to.kind = numberNode
	case *ast.BoolNode:
		to.kind = boolNode
	case *ast.SequenceNode:
		return to, to.convertItems(from)
	case *ast.MappingNode:
		return to, to.convertFields(from)
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return nil, complain(at, "anchors and aliases cannot be used in settings; write the value out")
	case *ast.TagNode:
		return nil, complain(at, "tags cannot be used in settings; write the value without one")
	default:
		return nil, complain(at, "this form of YAML cannot be used in settings")
	}
	return to, nil
}

func (n *node) convertItems(from *ast.SequenceNode) error {
	n.kind = listNode
	for _, value := range from.Values {
		item, err := convert(value)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	return nil
}

func (n *node) convertFields(from *ast.MappingNode) error {
	n.kind = mappingNode
	seen := map[string]bool{}
	for _, pair := range from.Values {
		key, err := convert(pair.Key)
		if err != nil {
			return err
		}
		if key.kind != textNode {
			return complain(pair.Key.GetToken(), "a key must be a text; put it in quotes")
		}
		if seen[key.text] {
			return complain(pair.Key.GetToken(), "the key "+word(key.text)+" is there twice")
		}
		seen[key.text] = true
		value, err := convert(pair.Value)
		if err != nil {
			return err
		}
		if value.kind == nullNode { // often nothing is there to point at
			value.line, value.column = key.line, key.column
		}
		n.fields = append(n.fields, field{key, value})
	}
	if len(n.fields) > 0 {
		n.line, n.column = n.fields[0].key.line, n.fields[0].key.column
	}
	return nil
}
